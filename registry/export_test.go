package registry

// LogTags returns the log tags of op's parameters by shape ("entries.content"),
// empty for those without one.
func (op *Op) LogTags() map[string]string {
	tags := map[string]string{}
	var walk func(at string, p *objectPlan)
	walk = func(at string, p *objectPlan) {
		for name, f := range p.fields {
			tags[join(at, name)] = f.log
			if f.object != nil {
				walk(join(at, name), f.object)
			}
		}
	}
	walk("", op.decode)
	return tags
}
