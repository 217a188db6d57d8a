package podified

// NodeSelector returns the node selector that is in force, given those of an
// object and of the objects above it, nearest first. The first that is set
// decides, also when it is empty.
func NodeSelector(selectors ...*map[string]string) *map[string]string {
	for _, s := range selectors {
		if s != nil {
			return s
		}
	}
	return nil
}

// Selected returns the labels of a node selector, nil for none.
func Selected(selector *map[string]string) map[string]string {
	if selector == nil || len(*selector) == 0 {
		return nil
	}
	return *selector
}
