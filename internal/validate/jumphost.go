package validate

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/edpm-operators/edpm-operators/apis/common"
)

// JumpHost checks the host through which runs reach hosts; nil is in order.
func JumpHost(at *field.Path, jump *common.JumpHost) field.ErrorList {
	if jump == nil {
		return nil
	}
	errs := Address(at.Child("address"), jump.Address)
	errs = append(errs, User(at.Child("user"), jump.User)...)
	errs = append(errs, ObjectName(at.Child("sshPrivateKeySecret"), jump.SSHPrivateKeySecret)...)
	if _, wrong := HostKey(at.Child("hostKey"), jump.HostKey); wrong != nil {
		errs = append(errs, wrong)
	}
	return errs
}
