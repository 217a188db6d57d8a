package computeservice

import (
	"context"
	"net/http"
	"slices"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/services"
	"k8s.io/apimachinery/pkg/types"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
)

// Client reads and changes single services of one Nova. Its errors are *Trouble.
type Client struct {
	observer *Observer
	nova     types.NamespacedName
	api      *api
}

// Client authenticates with a Nova, unless that was done before.
func (o *Observer) Client(ctx context.Context, nova types.NamespacedName) (*Client, error) {
	o.mu.Lock()
	c := o.novas[nova]
	if c == nil || c.access == nil {
		o.mu.Unlock()
		return nil, &Trouble{novav1.APIUnreachableReason, "nova's API cannot be asked: the inputs of Nova " + nova.Name + " are not ready"}
	}
	access, client := *c.access, c.api
	o.mu.Unlock()
	if client == nil {
		ctx, cancel := context.WithTimeout(ctx, o.opts.Timeout)
		defer cancel()
		var err error
		if client, err = connect(ctx, access, o.opts); err != nil {
			return nil, err
		}
		o.mu.Lock()
		defer o.mu.Unlock()
		if c.access != nil && *c.access == access { // it may have been forgotten meanwhile
			c.api = client
		}
	}
	return &Client{o, nova, client}, nil
}

// Find returns the services of a host: more than one if it was in another cell before.
func (c *Client) Find(ctx context.Context, host string) ([]Service, error) {
	ctx, cancel := context.WithTimeout(ctx, c.observer.opts.Timeout)
	defer cancel()
	found, unreached, err := c.api.list(ctx, host)
	if len(unreached) > 0 {
		return nil, c.api.noDatabase(unreached)
	}
	return found, err
}

// Refresh reads a service of a list again. Without an id it no longer exists.
func (c *Client) Refresh(ctx context.Context, listed Service) (Service, error) {
	found, err := c.Find(ctx, listed.Host)
	i := slices.IndexFunc(found, func(f Service) bool { return f.ID == listed.ID })
	if err != nil || i < 0 {
		return Service{}, err
	}
	return c.keep(found[i], listed), nil
}

// Change of a service, in the words of nova's API.
type Change map[string]any

// ToServiceUpdateMap implements services.UpdateOptsBuilder.
func (c Change) ToServiceUpdateMap() (map[string]any, error) { return c, nil }

// Disable has the scheduler pass the host over. nova takes no longer reason than 255
// characters, and none that is empty.
func Disable(reason string) Change {
	return Change{"status": services.ServiceDisabled, "disabled_reason": Shorten(reason)}
}

// Enable has the scheduler choose the host again.
func Enable() Change { return Change{"status": services.ServiceEnabled} }

// ForceDown adds that the host is dead, so that its guests can be evacuated, or that it no
// longer is. There may be no other change.
func (c Change) ForceDown(down bool) Change {
	if c == nil {
		c = Change{}
	}
	c["forced_down"] = down
	return c
}

// Update changes a service, and returns it as it is then.
func (c *Client) Update(ctx context.Context, s Service, change Change) (Service, error) {
	ctx, cancel := context.WithTimeout(ctx, c.observer.opts.Timeout)
	defer cancel()
	answer, err := services.Update(ctx, c.api.compute, s.ID, change).Extract()
	if err != nil {
		return s, c.api.trouble(nova, err)
	}
	return c.keep(newService(*answer), s), nil
}

// keep has the observer know a service that was read after its last list, and returns it
// with what only the list says.
func (c *Client) keep(fresh, listed Service) Service {
	fresh.Rival = listed.Rival
	c.observer.mu.Lock()
	if known := c.observer.novas[c.nova]; known != nil && known.services[fresh.Host].ID == fresh.ID {
		known.services[fresh.Host] = fresh
	}
	c.observer.mu.Unlock()
	fresh.Mapped, fresh.ComputeID = listed.Mapped, listed.ComputeID // the observer keeps that by id
	return fresh
}

// Delete deletes a service, its host mapping and its resource provider. It returns false
// if nova refuses that because of instances. nova-compute must not run any more: it
// would create a compute node and a provider without a service.
func (c *Client) Delete(ctx context.Context, s Service) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, c.observer.opts.Timeout)
	defer cancel()
	err := services.Delete(ctx, c.api.compute, s.ID).ExtractErr()
	switch {
	case err == nil, gophercloud.ResponseCodeIs(err, http.StatusNotFound):
		return true, nil
	case gophercloud.ResponseCodeIs(err, http.StatusConflict):
		return false, nil
	}
	return false, c.api.trouble(nova, err)
}
