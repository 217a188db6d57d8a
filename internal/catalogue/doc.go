// Package catalogue knows the options that an image has: what oslo-config-generator
// prints in it, and what that says of a text which people write.
//
// A value is refused only where the image is sure to refuse it too: the generator does
// not say everything of a type. What it leaves out, such as the type of the items of a
// list, the schemes of a URI or whether the case of a choice counts, is left to the image
// itself, which checks a configuration again before it is used.
// TestVerdictsAgreeWithNova in test/e2e/options holds this package to nova.
//
// Texts hold secrets. A verdict has a value only if neither the image nor the name of
// the option says that it is one, and none of a text from a Secret.
package catalogue
