// Package examples holds one runnable idea in each folder.
package examples
