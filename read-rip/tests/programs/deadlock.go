// Two goroutines take two mutexes in opposite orders. A third one ticks, so that Go's runtime does not see that all
// others sleep.
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

func main() {
	savings, current := &account{}, &account{}
	var met, done sync.WaitGroup
	met.Add(2)
	done.Add(2)
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
