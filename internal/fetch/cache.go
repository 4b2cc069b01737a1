package fetch

import (
	"container/list"
	"sync"
	"time"
)

const (
	cacheBytes = 32 << 20
	cacheTime  = 5 * time.Minute
)

// A cache holds whole documents by the URL that was asked for, cacheBytes in
// all; the least recently used go first.
type cache struct {
	mu    sync.Mutex
	byURL map[string]*list.Element // of *entry
	order list.List                // most recently used first
	bytes int
}

// An entry of the cache never changes but for its time.
type entry struct {
	key   string
	doc   *Document
	size  int
	since time.Time // when the server last said that doc is current
}

// get returns the document of key where it is no older than cacheTime.
func (c *cache) get(key string, now time.Time) *Document {
	c.mu.Lock()
	defer c.mu.Unlock()
	el, ok := c.byURL[key]
	if !ok {
		return nil
	}
	e := el.Value.(*entry)
	if now.Sub(e.since) > cacheTime {
		c.remove(el)
		return nil
	}
	c.order.MoveToFront(el)
	return e.doc
}

// put keeps doc as what key led to at time now.
func (c *cache) put(key string, doc *Document, now time.Time) {
	size := len(key) + len(doc.Body)
	for name, values := range doc.Header {
		for _, v := range values {
			size += len(name) + len(v)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if el, ok := c.byURL[key]; ok {
		c.remove(el)
	}
	if size > cacheBytes/4 {
		return
	}
	for c.bytes+size > cacheBytes {
		c.remove(c.order.Back())
	}
	if c.byURL == nil {
		c.byURL = make(map[string]*list.Element)
	}
	c.byURL[key] = c.order.PushFront(&entry{key, doc, size, now})
	c.bytes += size
}

// remove needs c.mu.
func (c *cache) remove(el *list.Element) {
	e := c.order.Remove(el).(*entry)
	delete(c.byURL, e.key)
	c.bytes -= e.size
}
