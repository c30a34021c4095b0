// Goroutines that wait for one another at channels, groups and conditions, or only seem to: the argument says which. A
// listener waits for connections, and another goroutine ticks, so that Go's runtime does not see that all others sleep.
package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"sync"
	"time"
)

// Each of these returns what `main` waits in.
var programs = map[string]func() func(){
	// The workers send what main receives only after all of them are done.
	"group": func() func() {
		results, done := make(chan int), &sync.WaitGroup{}
		for i := 0; i < 3; i++ {
			done.Add(1)
			go func(i int) {
				defer done.Done()
				results <- i
			}(i)
		}
		return func() {
			done.Wait()
			for range results {
			}
		}
	},
	// Each receives before it sends.
	"receive": func() func() {
		here, there := make(chan int), make(chan int)
		go func() { <-here; there <- 1 }()
		return func() { <-there; here <- 1 }
	},
	// Both select, beside a context that nobody cancels, and one sends.
	"select": func() func() {
		ctx, cancel := context.WithCancel(context.Background())
		jobs, results := make(chan int), make(chan int)
		go func() {
			for {
				select {
				case <-ctx.Done():
					return
				case job := <-jobs:
					results <- job
					results <- job
				}
			}
		}()
		return func() {
			jobs <- 1
			<-results
			jobs <- 2
			cancel()
		}
	},
	// One waits for a condition that another one would signal with a mutex that the first keeps.
	"condition": func() func() {
		// A mutex alone shares its few bytes of the heap with other values, which anybody may reach.
		locks := &struct {
			outer, inner sync.Mutex
			ready        *sync.Cond
		}{}
		locks.ready = sync.NewCond(&locks.inner)
		locks.outer.Lock()
		go func() { locks.outer.Lock(); locks.ready.Signal(); locks.outer.Unlock() }()
		return func() { locks.inner.Lock(); locks.ready.Wait(); locks.inner.Unlock(); locks.outer.Unlock() }
	},
	"nil": func() func() {
		go func() { var none chan int; none <- 1 }()
		return func() { select {} }
	},
	// Healthy: workers that wait for jobs of requests, and main for ever.
	"pool": func() func() {
		jobs, results := make(chan int), make(chan int)
		for i := 0; i < 3; i++ {
			go func() {
				for job := range jobs {
					results <- job
				}
			}()
		}
		go serve(func() { jobs <- 1; <-results })
		forever := make(chan bool)
		return func() { <-forever }
	},
	// Healthy: the group ends when a timer closes the channel.
	"timer": func() func() {
		done, end := &sync.WaitGroup{}, make(chan int)
		done.Add(1)
		go func() { defer done.Done(); <-end }()
		time.AfterFunc(time.Hour, func() { close(end) })
		return func() { done.Wait(); fmt.Println(end) }
	},
	// Healthy: a sender waits for one that sleeps.
	"slow": func() func() {
		lines := make(chan int)
		go func() {
			for {
				time.Sleep(time.Hour)
				<-lines
			}
		}()
		return func() { lines <- 1 }
	},
	// Healthy: a pool that its program has forgotten, and main waits for ever for a group.
	"forgotten": func() func() {
		jobs, results := make(chan int), make(chan int)
		go func() {
			for job := range jobs {
				results <- job
			}
		}()
		go func() {
			for range results {
			}
		}()
		var forever sync.WaitGroup
		forever.Add(1)
		return forever.Wait
	},
	// Healthy: others have the channels in a map of the program.
	"global": func() func() {
		here, done := make(chan int), &sync.WaitGroup{}
		waiting["here"] = here
		done.Add(1)
		go func() { defer done.Done(); here <- 1 }()
		return func() { done.Wait(); <-here }
	},
}

var waiting = map[string]chan int{}

func serve(handle func()) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	for {
		if connection, err := listener.Accept(); err == nil {
			handle()
			connection.Close()
		}
	}
}

func main() {
	go serve(func() {})
	go func() {
		for range time.Tick(10 * time.Millisecond) {
		}
	}()
	wait := programs[os.Args[1]]()
	time.Sleep(50 * time.Millisecond)
	fmt.Println("ready")
	wait()
}
