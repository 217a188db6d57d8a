package podified

// Selected returns the labels of a node selector, nil for none. Of those of an
// object and of the objects above it the nearest that is set decides, also when it
// is empty: cmp.Or of the pointers.
func Selected(selector *map[string]string) map[string]string {
	if selector == nil || len(*selector) == 0 {
		return nil
	}
	return *selector
}
