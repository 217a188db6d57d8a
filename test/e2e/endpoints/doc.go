// Package endpoints runs the API and the metadata service of nova as their pods do, from
// images of each supported release and with each server that an image can have: as a
// program, in uWSGI and in httpd. It needs root and podman, and is skipped with -short.
package endpoints
