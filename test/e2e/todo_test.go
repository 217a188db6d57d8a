package e2e

import "context"

func collectLeaks(context.Context) {}
func cellRuleStories()             {}
func changeStories()               {}
func deletionStories()             {}
func batchStories()                {}
func inputStories()                {}
func rightsStories()               {}
func osloStories()                 {}
func secretsStories()              {}
