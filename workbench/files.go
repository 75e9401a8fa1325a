package workbench

// disk is the state of the domain files.
type disk struct {
	Files   map[string]*file   `json:"files"`
	Folders map[string]*folder `json:"folders"`
	Links   map[string]string  `json:"links"` // name of a link: file and reader
	Fresh   FreshNames         `json:"fresh"`
}

type file struct {
	Owner  string `json:"owner"`
	Status string `json:"status"`
	Folder string `json:"folder"`
	Topic  string `json:"topic"`
	Size   int    `json:"size"`
}

type folder struct {
	Status string `json:"status"`
	Space  int    `json:"space"` // the biggest file that it takes
}

var (
	folders    = []string{"inbox", "archive", "public", "private", "backup"}
	fileTopics = []string{"music", "photo", "story", "budget", "recipe"}
)

func files() Domain {
	name, to := Text("file"), Choice("folder", folders)
	return Domain{
		Name:  "files",
		About: "you help with files. locked files cannot be moved, shared or deleted, a folder takes no file bigger than its space.",
		Tools: []Tool{
			{Name: "find_files", About: "list the files of an owner", Params: []Param{Text("owner")}, Do: On(findFiles)},
			{Name: "get_file", About: "show a file", Params: []Param{name}, Do: On(getFile)},
			{Name: "get_folder", About: "show a folder", Params: []Param{to}, Do: On(getFolder)},
			{Name: "move_file", About: "move an open file to a folder", Params: []Param{name, to}, Write: true, Do: On(moveFile)},
			{Name: "copy_file", About: "copy a file to a folder", Params: []Param{name, to}, Write: true, Do: On(copyFile)},
			{Name: "share_file", About: "share an open file with a reader", Params: []Param{name, Text("reader")}, Write: true, Do: On(shareFile)},
			{Name: "delete_file", About: "delete an open file", Params: []Param{name}, Write: true, Do: On(deleteFile)},
		},
		New: newDisk,
		Kinds: append(fileNoun().Kinds(),
			Kind{"folder", 6, For(fileFolder)},
			Kind{"act", 12, For(fileAct)},
			Kind{"move", 12, For(fileMove)},
			Kind{"limit", 10, For(fileLimit)},
			Kind{"copy", 8, For(fileCopy)},
			Kind{"send", 8, For(fileSend)},
			Kind{"try", 10, For(fileTry)},
			Kind{"beyond", 5, For(fileBeyond)}),
	}
}

func fileNoun() Noun {
	return Noun{
		One: "file", Owner: "owner", Shows: []string{"status", "size", "folder", "topic"},
		Status: "open", Verb: "delete", End: erasePlan,
		Number: "size", Less: "smaller", Least: "smallest", Most: "biggest",
		Add: func(r *Rand, s State, owner string, size int) string {
			return s.(*disk).add(r, owner, size)
		},
	}
}

func newDisk(r *Rand) State {
	s := &disk{map[string]*file{}, map[string]*folder{}, map[string]string{}, r.Fresh()}
	for _, name := range folders {
		s.Folders[name] = &folder{r.One("open", "open", "open", "closed"), r.Int(30, 95)}
	}
	for range 3 {
		s.any(r)
	}
	return s
}

// add makes a file; a size of 0 is drawn.
func (s *disk) add(r *Rand, owner string, size int) string {
	name := r.Name()
	if size == 0 {
		size = r.Int(5, 95)
	}
	s.Files[name] = &file{owner, r.One("open", "open", "open", "locked"), r.One(folders...), r.One(fileTopics...), size}
	return name
}

func (s *disk) any(r *Rand) string { return s.add(r, r.Person(), 0) }

func (s *disk) file(name string) (*file, error) {
	if f, ok := s.Files[name]; ok {
		return f, nil
	}
	return nil, NotFound("file", name, s.Files, "find_files")
}

// open returns a file that may be changed.
func (s *disk) open(name string) (*file, error) {
	f, err := s.file(name)
	if err == nil && f.Status != "open" {
		return nil, Refuse("status", f.Status, "file is not open")
	}
	return f, err
}

// fits refuses a file that a folder does not take.
func (s *disk) fits(f *file, name string) error {
	switch to := s.Folders[name]; {
	case to.Status != "open":
		return Refuse("status", to.Status, "folder is not open")
	case to.Space < f.Size:
		return Refuse("space", to.Space, "folder is too small")
	}
	return nil
}

func findFiles(s *disk, a Args) (any, error) {
	list := []Fields{}
	for _, name := range sortedKeys(s.Files) {
		if f := s.Files[name]; f.Owner == a.Text("owner") {
			list = append(list, Fields{"file": name, "size": f.Size})
		}
	}
	return Fields{"files": list}, nil
}

func getFile(s *disk, a Args) (any, error) {
	f, err := s.file(a.Text("file"))
	if err != nil {
		return nil, err
	}
	return Fields{"status": f.Status, "size": f.Size, "folder": f.Folder, "topic": f.Topic}, nil
}

func getFolder(s *disk, a Args) (any, error) {
	to := s.Folders[a.Text("folder")]
	return Fields{"status": to.Status, "space": to.Space}, nil
}

func moveFile(s *disk, a Args) (any, error) {
	f, err := s.open(a.Text("file"))
	if err != nil {
		return nil, err
	}
	if err := s.fits(f, a.Text("folder")); err != nil {
		return nil, err
	}
	f.Folder = a.Text("folder")
	return Fields{"folder": f.Folder, "size": f.Size}, nil
}

func copyFile(s *disk, a Args) (any, error) {
	f, err := s.file(a.Text("file"))
	if err != nil {
		return nil, err
	}
	if err := s.fits(f, a.Text("folder")); err != nil {
		return nil, err
	}
	name := s.Fresh.Next()
	s.Files[name] = &file{f.Owner, "open", a.Text("folder"), f.Topic, f.Size}
	return Fields{"file": name, "folder": a.Text("folder")}, nil
}

func shareFile(s *disk, a Args) (any, error) {
	if _, err := s.open(a.Text("file")); err != nil {
		return nil, err
	}
	link := s.Fresh.Next()
	s.Links[link] = a.Text("file") + " " + a.Text("reader")
	return Fields{"link": link, "reader": a.Text("reader")}, nil
}

func deleteFile(s *disk, a Args) (any, error) {
	f, err := s.open(a.Text("file"))
	if err != nil {
		return nil, err
	}
	delete(s.Files, a.Text("file"))
	return Fields{"status": "deleted", "size": f.Size}, nil
}

// Plans.

func erasePlan(name any) *Plan {
	return Do("delete", "delete_file", Values{"file": name},
		Say("done, %v is deleted, the size was %v.", name, From("delete.size")))
}

func sharePlan(name any, reader string) *Plan {
	return Do("share", "share_file", Values{"file": name, "reader": reader},
		Say("done, the link for %v is %v.", reader, From("share.link")))
}

// ifFits looks at a folder and goes on with yes if it takes the file that was
// seen.
func ifFits(folder string, yes *Plan) *Plan {
	small := Sorry("the space of %v is %v.", folder, From("folder.space"))
	return Do("folder", "get_folder", Values{"folder": folder},
		OnlyIf(From("folder.status").Is("open"), If(From("folder.space").Below(From("seen.size")), small, yes),
			folder, From("folder.status")))
}

func fileMovePlan(name any, folder string) *Plan {
	return ifFits(folder, Do("move", "move_file", Values{"file": name, "folder": folder},
		Say("done, %v is in %v, the size is %v.", name, folder, From("move.size"))))
}

// Kinds.

// fileFolder: a question about a folder.
func fileFolder(r *Rand, s *disk) Turn {
	name, n := r.One(folders...), r.Int(20, 80)
	key := r.One("status", "space")
	slots := Values{"folder": name, "n": n, "key": key}
	see := func(next *Plan) *Plan { return Do("folder", "get_folder", Values{"folder": name}, next) }
	if r.Chance(0.4) {
		return Turn{
			r.Phrase(slots, "does the folder {folder} have less than {n} of space?", "is the space of folder {folder} less than {n}?",
				"folder {folder} has a space of less than {n}, yes or no?"),
			see(YesNo(From("folder.space").Below(n), "space", name, From("folder.space"))),
		}
	}
	return Turn{
		r.Phrase(slots, "what is the {key} of folder {folder}?", "tell me the {key} of the folder {folder}.",
			"i want to use the folder {folder}. which {key} does it have?"),
		see(Tell(key, name, From("folder."+key))),
	}
}

// fileAct: share or delete, if the file allows it.
func fileAct(r *Rand, s *disk) Turn {
	name, reader := s.any(r), r.Person()
	slots := Values{"file": name, "reader": reader}
	if r.Chance(0.4) {
		return Turn{
			r.Phrase(slots, "please delete file {file}.", "i do not need {file} any more, delete it.",
				"delete the file {file} and tell me its size."),
			fileNoun().If(name, "open", erasePlan(name)),
		}
	}
	return Turn{
		r.Phrase(slots, "share {file} with {reader}.", "{reader} wants to read {file}, share it.",
			"please share the file {file} with {reader}. what is the link?"),
		fileNoun().If(name, "open", sharePlan(name, reader)),
	}
}

// fileMove: the file and the folder must both allow it.
func fileMove(r *Rand, s *disk) Turn {
	name := s.any(r)
	to := r.Other(s.Files[name].Folder, folders)
	return Turn{
		r.Phrase(Values{"file": name, "folder": to}, "move {file} to {folder}.", "please put the file {file} into {folder}.",
			"{file} belongs to the folder {folder}, move it there.", "move file {file} to {folder} and tell me its size."),
		fileNoun().If(name, "open", fileMovePlan(name, to)),
	}
}

// fileLimit: the user says what to do with small and with big files.
func fileLimit(r *Rand, s *disk) Turn {
	name, reader, n := s.any(r), r.Person(), r.Int(20, 80)
	slots := Values{"file": name, "reader": reader, "n": n, "folder": r.Other(s.Files[name].Folder, folders)}
	less := From("seen.size").Below(n)
	if r.Chance(0.5) {
		return Turn{
			r.Phrase(slots, "if {file} is smaller than {n}, share it with {reader}, otherwise delete it.",
				"share {file} with {reader} if its size is less than {n}, else delete it.",
				"is the size of {file} less than {n}? then share it with {reader}, if not, delete it."),
			fileNoun().If(name, "open", If(less, sharePlan(name, reader), erasePlan(name))),
		}
	}
	return Turn{
		r.Phrase(slots, "if {file} is smaller than {n}, delete it, otherwise move it to {folder}.",
			"delete {file} if its size is less than {n}, else move it to {folder}.",
			"is the size of {file} less than {n}? then delete it, if not, move it to {folder}."),
		fileNoun().If(name, "open", If(less, erasePlan(name), fileMovePlan(name, slots["folder"].(string)))),
	}
}

// fileCopy: a copy, and perhaps the file goes.
func fileCopy(r *Rand, s *disk) Turn {
	name, to := s.any(r), r.One(folders...)
	slots := Values{"file": name, "folder": to}
	copied := func(next *Plan) *Plan {
		return ifFits(to, Do("copy", "copy_file", Values{"file": name, "folder": to}, next))
	}
	if r.Chance(0.5) {
		return Turn{
			r.Phrase(slots, "copy {file} to {folder}.", "please make a copy of {file} in {folder}.",
				"i need a copy of file {file} in {folder}. what is it called?"),
			fileNoun().Look("seen", name, copied(Say("done, the copy is %v.", From("copy.file")))),
		}
	}
	return Turn{
		r.Phrase(slots, "copy {file} to {folder}, then delete {file}.", "make a copy of {file} in {folder} and delete the old file.",
			"i only need a copy of {file} in {folder}, so copy it and delete it."),
		fileNoun().If(name, "open", copied(Do("delete", "delete_file", Values{"file": name},
			Say("done, the copy is %v.", From("copy.file"))))),
	}
}

// fileSend: the file must be found first.
func fileSend(r *Rand, s *disk) Turn {
	n, owner, reader := fileNoun(), r.Person(), r.Person()
	for _, size := range r.Ints(r.Int(2, 3), 5, 95) {
		s.add(r, owner, size)
	}
	which, name := n.Pick(r)
	return Turn{
		r.Phrase(Values{"owner": owner, "reader": reader, "which": which},
			"share the {which} file of {owner} with {reader}.", "{reader} wants to read the {which} file of {owner}.",
			"find the {which} file of {owner} and share it with {reader}."),
		n.Find(owner, n.If(name, "open", sharePlan(name, reader))),
	}
}

// fileTry: the user wants no look before; the tool may refuse.
func fileTry(r *Rand, s *disk) Turn {
	name, reader := s.any(r), r.Person()
	s.Files[name].Status = r.One("open", "locked")
	slots := Values{"file": name, "reader": reader}
	if r.Chance(0.5) {
		return Turn{
			r.Phrase(slots, "try to delete {file} at once.", "try to delete file {file}.", "please try to delete my file {file}."),
			Attempt(erasePlan(name), name, "status"),
		}
	}
	return Turn{
		r.Phrase(slots, "try to share {file} with {reader}.", "try to give {reader} a link to file {file}.",
			"please try to share my file {file} with {reader}."),
		Attempt(sharePlan(name, reader), name, "status"),
	}
}

func fileBeyond(r *Rand, s *disk) Turn {
	return Turn{
		r.Phrase(Values{"file": s.any(r), "owner": r.Person()},
			"print file {file}.", "read {file} to me, please.", "call {owner} about {file}.",
			"sing the music in {file}.", "paint a photo of {owner}."),
		Beyond(),
	}
}
