// Two threads that have a monitor each and wait for the other one's, one that waits for a lock of
// java.util.concurrent, and an idle pool. Prints `ready` when all of them wait, and ends with its standard input.

import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.Executors;
import java.util.concurrent.locks.ReentrantLock;

public class Deadlock {
    static final Object SAVINGS = new Object();
    static final Object CURRENT = new Object();
    static final ReentrantLock LOCK = new ReentrantLock();
    static final CyclicBarrier BOTH = new CyclicBarrier(2);

    static Thread start(String name, Runnable body) {
        Thread thread = new Thread(body, name);
        thread.setDaemon(true);
        thread.start();
        return thread;
    }

    static void transfer(Object from, Object to) {
        synchronized (from) {
            try {
                BOTH.await();
            } catch (Exception error) {
                throw new IllegalStateException(error);
            }
            synchronized (to) {
                throw new IllegalStateException("no deadlock");
            }
        }
    }

    public static void main(String[] arguments) throws Exception {
        Thread saver = start("saver", () -> transfer(SAVINGS, CURRENT));
        Thread spender = start("spender", () -> transfer(CURRENT, SAVINGS));
        LOCK.lock();
        Thread waiter = start("waiter", LOCK::lock);
        Executors.newFixedThreadPool(2, body -> {
            Thread worker = new Thread(body, "worker");
            worker.setDaemon(true);
            return worker;
        }).submit(() -> {}).get();
        while (saver.getState() != Thread.State.BLOCKED || spender.getState() != Thread.State.BLOCKED
                || waiter.getState() != Thread.State.WAITING) {
            Thread.sleep(1);
        }
        System.out.println("ready");
        System.in.read();
    }
}
