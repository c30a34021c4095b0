# Two threads take two locks in opposite orders. The first thread waits for their end.
import threading

savings, current_account = threading.Lock(), threading.Lock()
both = threading.Barrier(2)


def transfer(one, other):
    with one:
        both.wait()
        with other:
            pass


for locks in ((savings, current_account), (current_account, savings)):
    threading.Thread(target=transfer, args=locks).start()
