package domains

import (
	"maps"
	"slices"

	"envace/workbench"
)

// disk is the state of the domain files.
type disk struct {
	Files   map[string]*file     `json:"files"`
	Folders map[string]*folder   `json:"folders"`
	Links   map[string]string    `json:"links"` // name of a link: file and reader
	Fresh   workbench.FreshNames `json:"fresh"`
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
	Space  int    `json:"space"` // size of the largest file that it takes
}

var (
	folders    = []string{"inbox", "archive", "public", "private", "backup"}
	fileStops  = []string{"locked", "broken", "hidden"}
	placeStops = []string{"closed", "full", "old"}
	fileTopics = []string{"music", "photo", "story", "budget", "recipe"}
)

func files() workbench.Domain {
	name, to := workbench.Text("file"), workbench.Choice("folder", folders)
	return workbench.Domain{
		Name:  "files",
		About: "you help with files. only open files can be moved, shared or deleted, only an open folder takes files, and none bigger than its space.",
		Tools: []workbench.Tool{
			{Name: "find_files", About: "list the files of an owner", Params: []workbench.Param{workbench.Text("owner")}, Do: workbench.On(findFiles)},
			{Name: "get_file", About: "show a file", Params: []workbench.Param{name}, Do: workbench.On(getFile)},
			{Name: "get_folder", About: "show a folder", Params: []workbench.Param{to}, Do: workbench.On(getFolder)},
			{Name: "move_file", About: "move an open file to a folder", Params: []workbench.Param{name, to}, Write: true, Do: workbench.On(moveFile)},
			{Name: "copy_file", About: "copy a file to a folder", Params: []workbench.Param{name, to}, Write: true, Do: workbench.On(copyFile)},
			{Name: "share_file", About: "share an open file with a reader", Params: []workbench.Param{name, workbench.Text("reader")},
				Write: true, Do: workbench.On(shareFile)},
			{Name: "delete_file", About: "delete an open file", Params: []workbench.Param{name}, Write: true, Do: workbench.On(deleteFile)},
		},
		New: newDisk,
		Kinds: append(fileNoun().Kinds(),
			workbench.Kind{Name: "folder", Weight: 2, Make: workbench.For(fileFolder)},
			workbench.Kind{Name: "act", Weight: 5, Make: workbench.For(fileAct)},
			workbench.Kind{Name: "move", Weight: 13, Make: workbench.For(fileMove)},
			workbench.Kind{Name: "limit", Weight: 12, Make: workbench.For(fileLimit)},
			workbench.Kind{Name: "copy", Weight: 12, Make: workbench.For(fileCopy)},
			workbench.Kind{Name: "send", Weight: 12, Make: workbench.For(fileSend)},
			workbench.Kind{Name: "try", Weight: 9, Make: workbench.For(fileTry)},
			workbench.Kind{Name: "beyond", Weight: 3, Make: workbench.For(fileBeyond)}),
	}
}

func fileNoun() workbench.Noun {
	return workbench.Noun{
		One: "file", Owner: "owner", Shows: []string{"status", "size", "folder", "topic"},
		Status: "open", Others: fileStops, Verb: "delete", End: erasePlan,
		Number: "size", Less: "smaller", Least: "smallest", Most: "biggest",
		Add: func(r *workbench.Rand, s workbench.State, owner string, size int, status string) string {
			return s.(*disk).add(r, owner, size, status)
		},
	}
}

func newDisk(r *workbench.Rand) workbench.State {
	s := &disk{map[string]*file{}, map[string]*folder{}, map[string]string{}, r.Fresh()}
	for _, name := range folders {
		s.Folders[name] = &folder{usually(r, "open", placeStops), r.Int(20, 80)}
	}
	for range 3 {
		s.any(r)
	}
	return s
}

// add makes a file and returns its name. A size of 0 is drawn, and so is a status of
// "".
func (s *disk) add(r *workbench.Rand, owner string, size int, status string) string {
	name := r.Name()
	if size == 0 {
		size = r.Int(5, 95)
	}
	if status == "" {
		status = usually(r, "open", fileStops)
	}
	s.Files[name] = &file{owner, status, r.One(folders...), r.One(fileTopics...), size}
	return name
}

func (s *disk) any(r *workbench.Rand) string { return s.add(r, r.Person(), 0, "") }

func (s *disk) file(name string) (*file, error) {
	if f, ok := s.Files[name]; ok {
		return f, nil
	}
	return nil, workbench.NotFound("file", name, s.Files, "find_files")
}

// open returns a file that may be changed.
func (s *disk) open(name string) (*file, error) {
	f, err := s.file(name)
	if err == nil && f.Status != "open" {
		return nil, workbench.Refuse("status", f.Status, "file is not open")
	}
	return f, err
}

// fits returns an error if the folder does not take the file.
func (s *disk) fits(f *file, name string) error {
	switch to := s.Folders[name]; {
	case to.Status != "open":
		return workbench.Refuse("status", to.Status, "folder is not open")
	case to.Space < f.Size:
		return workbench.Refuse("space", to.Space, "folder is too small")
	}
	return nil
}

func findFiles(s *disk, a workbench.Args) (any, error) {
	list := []workbench.Fields{}
	for _, name := range slices.Sorted(maps.Keys(s.Files)) {
		if f := s.Files[name]; f.Owner == a.Text("owner") {
			list = append(list, workbench.Fields{"file": name, "size": f.Size})
		}
	}
	return workbench.Fields{"files": list}, nil
}

func getFile(s *disk, a workbench.Args) (any, error) {
	f, err := s.file(a.Text("file"))
	if err != nil {
		return nil, err
	}
	return workbench.Fields{"status": f.Status, "size": f.Size, "folder": f.Folder, "topic": f.Topic}, nil
}

func getFolder(s *disk, a workbench.Args) (any, error) {
	to := s.Folders[a.Text("folder")]
	return workbench.Fields{"status": to.Status, "space": to.Space}, nil
}

func moveFile(s *disk, a workbench.Args) (any, error) {
	f, err := s.open(a.Text("file"))
	if err != nil {
		return nil, err
	}
	if err := s.fits(f, a.Text("folder")); err != nil {
		return nil, err
	}
	f.Folder = a.Text("folder")
	return workbench.Fields{"folder": f.Folder, "size": f.Size}, nil
}

func copyFile(s *disk, a workbench.Args) (any, error) {
	f, err := s.file(a.Text("file"))
	if err != nil {
		return nil, err
	}
	if err := s.fits(f, a.Text("folder")); err != nil {
		return nil, err
	}
	name := s.Fresh.Next()
	s.Files[name] = &file{f.Owner, "open", a.Text("folder"), f.Topic, f.Size}
	return workbench.Fields{"file": name, "folder": a.Text("folder")}, nil
}

func shareFile(s *disk, a workbench.Args) (any, error) {
	if _, err := s.open(a.Text("file")); err != nil {
		return nil, err
	}
	link := s.Fresh.Next()
	s.Links[link] = a.Text("file") + " " + a.Text("reader")
	return workbench.Fields{"link": link, "reader": a.Text("reader")}, nil
}

func deleteFile(s *disk, a workbench.Args) (any, error) {
	f, err := s.open(a.Text("file"))
	if err != nil {
		return nil, err
	}
	delete(s.Files, a.Text("file"))
	return workbench.Fields{"status": "deleted", "size": f.Size}, nil
}

// Plans.

func erasePlan(name any) *workbench.Plan {
	return workbench.Do("delete", "delete_file", workbench.Values{"file": name},
		workbench.Say("done, %v is deleted, the size was %v.", name, workbench.From("delete.size")))
}

func sharePlan(name any, reader string) *workbench.Plan {
	return workbench.Do("share", "share_file", workbench.Values{"file": name, "reader": reader},
		workbench.Say("done, the link for %v is %v.", reader, workbench.From("share.link")))
}

// ifFits looks at a folder and continues with yes if it takes the file just looked
// at.
func ifFits(folder string, yes *workbench.Plan) *workbench.Plan {
	small := workbench.Sorry("the space of %v is %v.", folder, workbench.From("folder.space"))
	return workbench.Do("folder", "get_folder", workbench.Values{"folder": folder},
		workbench.OnlyIf(workbench.From("folder.status").Is("open"),
			workbench.If(workbench.From("folder.space").Below(workbench.From("seen.size")), small, yes),
			folder, workbench.From("folder.status")))
}

func fileMovePlan(name any, folder string) *workbench.Plan {
	return ifFits(folder, workbench.Do("move", "move_file", workbench.Values{"file": name, "folder": folder},
		workbench.Say("done, %v is in %v, the size is %v.", name, folder, workbench.From("move.size"))))
}

// Kinds.

// fileFolder: a question about a folder.
func fileFolder(r *workbench.Rand, s *disk) workbench.Turn {
	name, n := r.One(folders...), r.Int(20, 80)
	key := r.One("status", "space")
	slots := workbench.Values{"folder": name, "n": n, "key": key}
	see := func(next *workbench.Plan) *workbench.Plan {
		return workbench.Do("folder", "get_folder", workbench.Values{"folder": name}, next)
	}
	if r.Chance(0.4) {
		return workbench.Turn{
			User: r.Phrase(slots, "does the folder {folder} have less than {n} of space?", "is the space of folder {folder} less than {n}?",
				"tell me if the folder {folder} has less than {n} of space."),
			Plan: see(workbench.YesNo(workbench.From("folder.space").Below(n), "space", name, workbench.From("folder.space"))),
		}
	}
	return workbench.Turn{
		User: r.Phrase(slots, "what is the {key} of folder {folder}?", "i want to use the folder {folder}. which {key} does it have?",
			"tell me the {key} of the folder {folder}."),
		Plan: see(workbench.Tell(key, name, workbench.From("folder."+key))),
	}
}

// fileAct: share or delete, if the file is open.
func fileAct(r *workbench.Rand, s *disk) workbench.Turn {
	name, reader := s.any(r), r.Person()
	slots := workbench.Values{"file": name, "reader": reader}
	if r.Chance(0.4) {
		return workbench.Turn{
			User: r.Phrase(slots, "i do not need {file} any more, delete it.", "delete the file {file} and tell me its size.",
				"please delete file {file}."),
			Plan: fileNoun().If(name, "open", erasePlan(name)),
		}
	}
	return workbench.Turn{
		User: r.Phrase(slots, "{reader} wants to read {file}, share it.", "please share the file {file} with {reader}. what is the link?",
			"share file {file} with {reader}."),
		Plan: fileNoun().If(name, "open", sharePlan(name, reader)),
	}
}

// fileMove: move, if the file is open and the folder takes it.
func fileMove(r *workbench.Rand, s *disk) workbench.Turn {
	name := s.any(r)
	to := r.Other(s.Files[name].Folder, folders)
	return workbench.Turn{
		User: r.Phrase(workbench.Values{"file": name, "folder": to}, "move {file} to {folder}.", "please put the file {file} into {folder}.",
			"{file} belongs to the folder {folder}, move it there.", "please move file {file} to the folder {folder}."),
		Plan: fileNoun().If(name, "open", fileMovePlan(name, to)),
	}
}

// fileLimit: what to do depends on the size.
func fileLimit(r *workbench.Rand, s *disk) workbench.Turn {
	reader, n := r.Person(), r.Int(20, 80)
	name := s.add(r, r.Person(), r.Side(n, 0.5), "")
	slots := workbench.Values{"file": name, "reader": reader, "n": n, "folder": r.Other(s.Files[name].Folder, folders)}
	less := workbench.From("seen.size").Below(n)
	if r.Chance(0.5) {
		return workbench.Turn{
			User: r.Phrase(slots, "if {file} is smaller than {n}, share it with {reader}, otherwise delete it.",
				"share {file} with {reader} if its size is less than {n}, else delete it.",
				"is the size of {file} less than {n}? then share it with {reader}, if not, delete it."),
			Plan: fileNoun().If(name, "open", workbench.If(less, sharePlan(name, reader), erasePlan(name))),
		}
	}
	return workbench.Turn{
		User: r.Phrase(slots, "if {file} is smaller than {n}, delete it, otherwise move it to {folder}.",
			"delete {file} if its size is less than {n}, else move it to {folder}.",
			"is the size of {file} less than {n}? then delete it, if not, move it to {folder}."),
		Plan: fileNoun().If(name, "open", workbench.If(less, erasePlan(name), fileMovePlan(name, slots["folder"].(string)))),
	}
}

// fileCopy: copy, and sometimes delete the original.
func fileCopy(r *workbench.Rand, s *disk) workbench.Turn {
	name, to := s.any(r), r.One(folders...)
	slots := workbench.Values{"file": name, "folder": to}
	copied := func(next *workbench.Plan) *workbench.Plan {
		return ifFits(to, workbench.Do("copy", "copy_file", workbench.Values{"file": name, "folder": to}, next))
	}
	if r.Chance(0.5) {
		return workbench.Turn{
			User: r.Phrase(slots, "copy {file} to {folder}.", "please make a copy of {file} in {folder}.",
				"i need a copy of file {file} in {folder}. what is it called?"),
			Plan: fileNoun().Look("seen", name, copied(workbench.Say("done, the copy is %v.", workbench.From("copy.file")))),
		}
	}
	return workbench.Turn{
		User: r.Phrase(slots, "copy {file} to {folder}, then delete {file}.", "make a copy of {file} in {folder} and delete the old file.",
			"i only need a copy of {file} in {folder}, so copy it and delete it."),
		Plan: fileNoun().If(name, "open", copied(workbench.Do("delete", "delete_file", workbench.Values{"file": name},
			workbench.Say("done, the copy is %v.", workbench.From("copy.file"))))),
	}
}

// fileSend: share a file that must be found first, by an owner who may have none.
func fileSend(r *workbench.Rand, s *disk) workbench.Turn {
	n, owner, other, reader := fileNoun(), r.Person(), r.Person(), r.Person()
	for _, who := range []string{owner, other}[r.Int(0, 1):] {
		s.add(r, who, 0, r.One("open", r.One(fileStops...)))
	}
	return workbench.Turn{
		User: r.Phrase(workbench.Values{"owner": owner, "reader": reader, "other": other},
			"share the file of {owner}, or if there is none, that of {other}, with {reader}.",
			"{reader} wants to read the file of {owner}, or of {other} if there is none.",
			"find the file of {owner}, or of {other} if there is none, and share it with {reader}."),
		Plan: n.FindOr(owner, other, func(name workbench.Ref, id string) *workbench.Plan {
			return n.OnlyIf(id, name, "open", sharePlan(name, reader))
		}),
	}
}

// fileTry: the user says "try to", so there is no look first; the tool may refuse,
// and then a second file is tried.
func fileTry(r *workbench.Rand, s *disk) workbench.Turn {
	a, b, reader := s.add(r, r.Person(), 0, r.One("open", r.One(fileStops...))), s.any(r), r.Person()
	slots := workbench.Values{"a": a, "b": b, "reader": reader}
	if r.Chance(0.5) {
		return workbench.Turn{
			User: r.Phrase(slots, "try to delete {a} at once, or if that fails, {b}.", "try to delete file {a}, else file {b}.",
				"please try to delete file {a}, or if that fails, file {b}."),
			Plan: erasePlan(a).OnError(workbench.Attempt(erasePlan(b).As("other"), b, "status")),
		}
	}
	return workbench.Turn{
		User: r.Phrase(slots, "try to share {a} with {reader}, or if that fails, {b}.", "try to give {reader} a link to file {a}, else to file {b}.",
			"please try to share file {a} with {reader}, or if that fails, file {b}."),
		Plan: sharePlan(a, reader).OnError(workbench.Attempt(sharePlan(b, reader).As("other"), b, "status")),
	}
}

// fileBeyond: no tool can do it.
func fileBeyond(r *workbench.Rand, s *disk) workbench.Turn {
	return workbench.Turn{
		User: r.Phrase(workbench.Values{"file": s.any(r), "owner": r.Person()},
			"print file {file}.", "read {file} to me, please.", "call {owner} about {file}.",
			"sing the music in {file}.", "please paint a photo of {owner}."),
		Plan: workbench.Beyond(),
	}
}
