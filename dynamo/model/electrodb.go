package model

import "strings"

// The attributes in which ElectroDB, a library for Node, stores the name and the version of a record's
// entity. ElectroDB ignores records with other values.
const (
	AttrElectroDBEntity  = "__edb_e__"
	AttrElectroDBVersion = "__edb_v__"
)

// IsEntityAttribute reports whether the named attribute contains the name or the version of a record's
// entity. Each copy of a record has its own values.
func IsEntityAttribute(name string) bool {
	return name == "entity" || name == AttrElectroDBEntity || name == AttrElectroDBVersion
}

// ElectroDB maps the name of each entity to its name and version in ElectroDB. If it is nil, the
// records do not contain them.
type ElectroDB map[string]struct{ entity, version string }

// ParseElectroDB parses the version of all entities, followed by exceptions. An example is
// "1,order=2,customerOrder=OrderOfCustomer:3". Without an exception, an entity has the same name in
// ElectroDB.
func ParseElectroDB(text string) (ElectroDB, bool) {
	parts := strings.Split(text, ",")
	m := ElectroDB{}
	for _, e := range allEntities {
		m.set(e.Name, e.Name, parts[0])
	}
	valid := parts[0] != "" && !strings.ContainsAny(parts[0], "=:")
	for _, part := range parts[1:] {
		entity, version, _ := strings.Cut(part, "=")
		name, after, named := strings.Cut(version, ":")
		if !named {
			name, after = entity, version
		}
		_, known := m[entity]
		valid = valid && known && name != "" && after != ""
		m.set(entity, name, after)
	}
	return m, valid
}

func (m ElectroDB) set(entity, name, version string) {
	m[entity] = struct{ entity, version string }{name, version}
}

// identify sets the attributes by which ElectroDB recognizes a record of the entity e.
func (m ElectroDB) identify(e *Entity, r Record) Record {
	if id, ok := m[e.Name]; ok {
		r[AttrElectroDBEntity], r[AttrElectroDBVersion] = Str(id.entity), Str(id.version)
	}
	return r
}
