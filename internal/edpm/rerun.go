package edpm

import (
	"maps"

	"github.com/edpm-operators/edpm-operators/apis/common"
)

// honoured reports whether a run with this token in force, and these tokens of
// all sources, has done what the wanted token asks for.
func honoured(rerun string, tokens map[string]string, wanted string) bool {
	if wanted == "" || wanted == rerun {
		return true
	}
	for _, token := range tokens {
		if token == wanted {
			return true
		}
	}
	return false
}

// IsHonored reports whether a run has done what a token for another run asks for.
func IsHonored(record common.RunRecord, token string) bool {
	return honoured(record.Rerun, record.Tokens, ShortToken(token))
}

// remember notes the tokens of a host that has what is wanted. Among them are
// those that another one overrides: when that one is removed they are in force,
// and ask for nothing.
func (s State) remember(l *common.Ledger, step string, tokens map[string]string) {
	key, ok := map[Phase]string{Converged: step, Limited: limitedKey(step)}[s.Phase]
	record, has := l.Runs[key]
	news := false
	for _, token := range tokens {
		news = news || !honoured(record.Rerun, record.Tokens, token)
	}
	if ok && has && news {
		record.Tokens = merged(record.Tokens, tokens)
		l.Runs[key] = record
	}
}

// merged returns the tokens of all sources, the newer ones where both have one.
func merged(older, newer map[string]string) map[string]string {
	if len(older) == 0 {
		return newer
	}
	out := maps.Clone(older)
	maps.Copy(out, newer)
	return out
}

// shortTokens are the tokens as they are kept.
func shortTokens(tokens map[string]string) map[string]string {
	if len(tokens) == 0 {
		return nil
	}
	out := make(map[string]string, len(tokens))
	for source, token := range tokens {
		out[source] = ShortToken(token)
	}
	return out
}
