package grammar

// formats are patterns of the formats that are enforced: each a subset of what its
// specification allows, without rare and deprecated forms.
var formats = map[string]string{
	"date":      `^` + formatDate + `$`,
	"time":      `^` + formatTime + `$`,
	"date-time": `^` + formatDate + `T` + formatTime + `$`,
	"duration":  `^P(?:\d{1,4}W|(?:\d{1,4}Y(?:\d{1,2}M(?:\d{1,2}D)?)?|\d{1,4}M(?:\d{1,2}D)?|\d{1,4}D)(?:` + formatClock + `)?|` + formatClock + `)$`,
	"email":     `^` + formatAtom + `{1,32}(?:\.` + formatAtom + `{1,15}){0,2}@` + formatHost + `$`,
	"hostname":  `^` + formatHost + `$`,
	"ipv4":      `^` + formatIPv4 + `$`,
	"ipv6":      `^(?:[0-9a-f]{1,4}:){7}[0-9a-f]{1,4}$`,
	"uuid":      `^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`,
	"uri":       `^[a-z][a-z0-9+.-]{0,15}://` + formatHost + `(?::[1-9]\d{0,3})?(?:/[A-Za-z0-9._~-]*)*(?:\?[A-Za-z0-9._~=&-]*)?(?:#[A-Za-z0-9._~-]*)?$`,
}

const (
	formatDate  = `(?:[12]\d{3}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\d|30)|02-(?:0[1-9]|1\d|2[0-8]))|(?:19|20)(?:[2468][048]|[13579][26]|0[48])-02-29)`
	formatTime  = `(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,9})?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)`
	formatClock = `T(?:\d{1,3}H(?:\d{1,2}M(?:\d{1,2}S)?)?|\d{1,3}M(?:\d{1,2}S)?|\d{1,4}S)`
	formatAtom  = `[A-Za-z0-9_+-]`
	formatHost  = `[A-Za-z](?:[A-Za-z0-9]|-[A-Za-z0-9]){0,20}(?:\.[A-Za-z](?:[A-Za-z0-9]|-[A-Za-z0-9]){0,20}){0,3}`
	formatIPv4  = `(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)){3}`
)
