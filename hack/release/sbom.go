package main

import (
	"encoding/hex"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

const suite = "github.com/edpm-operators/edpm-operators"

// bom returns the bill of materials as CycloneDX JSON. It has no time and no
// number of its own: the same programs make the same text.
func bom(version string, modules []*goModule) (string, error) {
	b := cdx.NewBOM()
	main := component(&goModule{Path: suite, Version: version, Licenses: []string{"Apache-2.0"}})
	main.Type = cdx.ComponentTypeApplication
	b.Metadata = &cdx.Metadata{Component: &main}
	components, uses := []cdx.Component{}, []string{}
	for _, m := range modules {
		c := component(m)
		components, uses = append(components, c), append(uses, c.BOMRef)
	}
	b.Components, b.Dependencies = &components, &[]cdx.Dependency{{Ref: main.BOMRef, Dependencies: &uses}}
	out := &strings.Builder{}
	err := cdx.NewBOMEncoder(out, cdx.BOMFileFormatJSON).SetPretty(true).Encode(b)
	return out.String(), err
}

func component(m *goModule) cdx.Component {
	purl := "pkg:golang/" + m.Path + "@" + m.Version
	c := cdx.Component{Type: cdx.ComponentTypeLibrary, BOMRef: purl, Name: m.Path, Version: m.Version, PackageURL: purl}
	if len(m.Sum) > 0 {
		c.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(m.Sum)}}
	}
	licenses := cdx.Licenses{}
	for _, name := range m.Licenses {
		licenses = append(licenses, cdx.LicenseChoice{License: &cdx.License{ID: name}})
	}
	c.Licenses = &licenses
	return c
}
