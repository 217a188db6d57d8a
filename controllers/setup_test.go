package controllers_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/edpm-operators/edpm-operators/controllers"
)

func TestOperatorsToChooseFrom(t *testing.T) {
	if err := controllers.CheckOperators([]string{"nova", "ocs"}); err != nil {
		t.Errorf("an optional operator cannot be chosen: %v", err)
	}
	err := controllers.CheckOperators([]string{"nova", "typo"})
	if err == nil || !strings.Contains(err.Error(), `"typo" is not an operator: choose from ansibleee`) || !strings.Contains(err.Error(), "ocs") {
		t.Errorf("the error is %v", err)
	}
	if slices.Contains(controllers.Operators, "ocs") {
		t.Error("the kind of another operator is taken over unasked")
	}
}
