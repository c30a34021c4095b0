# Two threads take two locks in opposite orders.
import threading


class Account:
    def __init__(self):
        self.lock = threading.Lock()


def transfer(one, other, is_first):
    with one.lock:
        met.wait()
        if is_first:
            with other.lock:
                return
        with other.lock:
            return


savings, current = Account(), Account()
met = threading.Barrier(2)
orders = [("saver", savings, current, True), ("spender", current, savings, False)]
threads = [threading.Thread(target=transfer, name=of[0], args=of[1:]) for of in orders]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
