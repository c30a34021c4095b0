// Two goroutines take two mutexes in opposite orders, and two more readers-writer locks: each has one as a reader, and
// wants the other one as a writer. One more ticks, so that Go's runtime does not see that all others sleep.
package main

import (
	"fmt"
	"sync"
	"time"
)

type account struct {
	mu      sync.Mutex
	balance int
}

func transfer(from, to *account, met, done *sync.WaitGroup) {
	defer done.Done()
	from.mu.Lock()
	met.Done()
	met.Wait()
	to.mu.Lock()
	to.mu.Unlock()
	from.mu.Unlock()
}

type page struct {
	text string
	mu   sync.RWMutex
}

func copyTo(from, to *page, met, done *sync.WaitGroup) {
	defer done.Done()
	from.mu.RLock()
	met.Done()
	met.Wait()
	to.mu.Lock()
	to.text = from.text
	to.mu.Unlock()
	from.mu.RUnlock()
}

func main() {
	savings, current := &account{}, &account{}
	var met, done sync.WaitGroup
	met.Add(4)
	done.Add(4)
	first, second := &page{}, &page{}
	go copyTo(first, second, &met, &done)
	go copyTo(second, first, &met, &done)
	go transfer(savings, current, &met, &done)
	go transfer(current, savings, &met, &done)
	go func() {
		for range time.Tick(time.Second) {
		}
	}()
	met.Wait()
	time.Sleep(100 * time.Millisecond)
	fmt.Println("ready")
	done.Wait()
}
