//! The types have the traits `Send`, `Sync` and `Unpin` where tokio's types have them, and nowhere else.

use std::cell::Cell;
use std::marker::PhantomData;
use std::rc::Rc;

/// `Send` and `Sync`.
#[derive(Clone, Debug)]
struct Yy;

/// `Send`, and not `Sync`.
#[derive(Clone, Debug)]
struct Yn {
    _value: Cell<u8>,
}

/// Neither.
#[derive(Clone, Debug)]
struct Nn {
    _value: Rc<u8>,
}

struct Probe<T: ?Sized>(PhantomData<T>);

macro_rules! has_traits {
    ($name:ident, $trait:path) => {
        mod $name {
            use super::Probe;

            /// What the method of a probe is if its type does not have the trait: a method of the type comes first.
            pub(super) trait Otherwise {
                fn $name(&self) -> bool {
                    false
                }
            }

            impl<T: ?Sized> Otherwise for Probe<T> {}
            impl<T: ?Sized + $trait> Probe<T> {
                #[allow(clippy::unused_self, reason = "it is the method of the trait, otherwise")]
                pub(super) fn $name(&self) -> bool {
                    true
                }
            }
        }
        use $name::Otherwise as _;
    };
}

has_traits!(is_send, Send);
has_traits!(is_sync, Sync);
has_traits!(is_unpin, Unpin);

/// A probe of what a function returns, which is not called.
fn of_result<A, T>(_function: impl FnOnce(A) -> T) -> Probe<T> {
    Probe(PhantomData)
}

macro_rules! traits {
    ($probe:expr) => {{
        let probe = $probe;
        [probe.is_send(), probe.is_sync(), probe.is_unpin()]
    }};
}

/// Compares the same type of both crates.
macro_rules! same {
    ($($($part:ident)::+ $(<$($argument:tt),*>)?;)*) => {
        $({
            type Own = librip_tokio::$($part)::+ $(<$($argument),*>)?;
            type Theirs = tokio::$($part)::+ $(<$($argument),*>)?;
            let own = traits!(Probe::<Own>(PhantomData));
            let theirs = traits!(Probe::<Theirs>(PhantomData));
            assert_eq!(own, theirs, "Send, Sync, Unpin of {}", stringify!($($part)::+ $(<$($argument),*>)?));
        })*
    };
}

/// Compares the same types with each of the three arguments.
macro_rules! same_of_each {
    ($($($part:ident)::+ $(<$lifetime:lifetime>)?;)*) => {
        $(
            same! {
                $($part)::+<$($lifetime,)? Yy>;
                $($part)::+<$($lifetime,)? Yn>;
                $($part)::+<$($lifetime,)? Nn>;
            }
        )*
    };
}

/// Compares the futures that a method returns: `Type as T: |argument| body`.
macro_rules! same_futures {
    ($($($part:ident)::+ $(<$argument:ty>)?: |$own:ident: $reference:ty| $body:expr;)*) => {
        $({
            let own = {
                type This = librip_tokio::$($part)::+ $(<$argument>)?;
                type Reference = Ref<This, $reference>;
                traits!(of_result(|$own: <Reference as Referred>::To| $body))
            };
            let theirs = {
                type This = tokio::$($part)::+ $(<$argument>)?;
                type Reference = Ref<This, $reference>;
                traits!(of_result(|$own: <Reference as Referred>::To| $body))
            };
            let name = stringify!($($part)::+ $(<$argument>)?);
            assert_eq!(own, theirs, "Send, Sync, Unpin of {name}: {}", stringify!($body));
        })*
    };
}

/// How a method takes the value.
struct Ref<T, R>(PhantomData<(T, R)>);
struct Borrowed;
struct Mutable;
struct Counted;
struct Owned;

trait Referred {
    type To;
}

impl<T: 'static> Referred for Ref<T, Borrowed> {
    type To = &'static T;
}
impl<T: 'static> Referred for Ref<T, Mutable> {
    type To = &'static mut T;
}
impl<T> Referred for Ref<T, Counted> {
    type To = std::sync::Arc<T>;
}
impl<T> Referred for Ref<T, Owned> {
    type To = T;
}

#[test]
fn a_probe_tells_the_traits() {
    assert_eq!(traits!(Probe::<Yy>(PhantomData)), [true, true, true]);
    assert_eq!(traits!(Probe::<Yn>(PhantomData)), [true, false, true]);
    assert_eq!(traits!(Probe::<Nn>(PhantomData)), [false, false, true]);
    assert_eq!(traits!(of_result(|(): ()| async {})), [true, true, false]);
}

#[test]
fn locks_and_guards_are_sent_and_shared_as_those_of_tokio() {
    same_of_each! {
        sync::Mutex;
        sync::OwnedMutexGuard;
        sync::MutexGuard<'static>;
        sync::MappedMutexGuard<'static>;
        sync::RwLock;
        sync::RwLockReadGuard<'static>;
        sync::RwLockWriteGuard<'static>;
        sync::RwLockMappedWriteGuard<'static>;
        sync::OwnedRwLockReadGuard;
        sync::OwnedRwLockWriteGuard;
        sync::OwnedRwLockMappedWriteGuard;
        sync::OwnedMappedMutexGuard;
        sync::OnceCell;
        sync::SetOnce;
    }
    same! {
        sync::OwnedMappedMutexGuard<Yy, Yn>;
        sync::OwnedMappedMutexGuard<Yy, Nn>;
        sync::OwnedMappedMutexGuard<Yn, Yy>;
        sync::OwnedMappedMutexGuard<Yn, Nn>;
        sync::OwnedMappedMutexGuard<Nn, Yy>;
        sync::OwnedMappedMutexGuard<Nn, Yn>;
        sync::OwnedRwLockReadGuard<Yy, Yn>;
        sync::OwnedRwLockReadGuard<Yy, Nn>;
        sync::OwnedRwLockReadGuard<Yn, Yy>;
        sync::OwnedRwLockReadGuard<Nn, Yy>;
        sync::OwnedRwLockMappedWriteGuard<Yy, Yn>;
        sync::OwnedRwLockMappedWriteGuard<Yy, Nn>;
        sync::OwnedRwLockMappedWriteGuard<Yn, Yy>;
        sync::OwnedRwLockMappedWriteGuard<Nn, Yy>;
        sync::Semaphore;
        sync::SemaphorePermit<'static>;
        sync::OwnedSemaphorePermit;
        sync::Notify;
        sync::futures::Notified<'static>;
        sync::futures::OwnedNotified;
        sync::Barrier;
    }
}

#[test]
fn channels_and_tasks_are_sent_and_shared_as_those_of_tokio() {
    same_of_each! {
        sync::mpsc::Sender;
        sync::mpsc::WeakSender;
        sync::mpsc::Receiver;
        sync::mpsc::Permit<'static>;
        sync::mpsc::PermitIterator<'static>;
        sync::mpsc::OwnedPermit;
        sync::mpsc::UnboundedSender;
        sync::mpsc::WeakUnboundedSender;
        sync::mpsc::UnboundedReceiver;
        sync::oneshot::Sender;
        sync::oneshot::Receiver;
        sync::watch::Sender;
        sync::watch::Receiver;
        sync::broadcast::Sender;
        sync::broadcast::WeakSender;
        sync::broadcast::Receiver;
        task::JoinHandle;
        task::JoinSet;
    }
}

#[test]
fn futures_of_locks_are_sent_and_shared_as_those_of_tokio() {
    same_futures! {
        sync::Mutex<Yy>: |lock: Borrowed| lock.lock();
        sync::Mutex<Yn>: |lock: Borrowed| lock.lock();
        sync::Mutex<Nn>: |lock: Borrowed| lock.lock();
        sync::Mutex<Yy>: |lock: Counted| lock.lock_owned();
        sync::Mutex<Yn>: |lock: Counted| lock.lock_owned();
        sync::Mutex<Nn>: |lock: Counted| lock.lock_owned();
        sync::RwLock<Yy>: |lock: Borrowed| lock.read();
        sync::RwLock<Yn>: |lock: Borrowed| lock.read();
        sync::RwLock<Nn>: |lock: Borrowed| lock.read();
        sync::RwLock<Yy>: |lock: Borrowed| lock.write();
        sync::RwLock<Yn>: |lock: Borrowed| lock.write();
        sync::RwLock<Nn>: |lock: Borrowed| lock.write();
        sync::RwLock<Yy>: |lock: Counted| lock.read_owned();
        sync::RwLock<Yn>: |lock: Counted| lock.write_owned();
        sync::RwLock<Nn>: |lock: Counted| lock.write_owned();
        sync::Semaphore: |semaphore: Borrowed| semaphore.acquire();
        sync::Semaphore: |semaphore: Borrowed| semaphore.acquire_many(2);
        sync::Semaphore: |semaphore: Counted| semaphore.acquire_owned();
        sync::Semaphore: |semaphore: Counted| semaphore.acquire_many_owned(2);
        sync::Notify: |notify: Borrowed| notify.notified();
        sync::Notify: |notify: Counted| notify.notified_owned();
        sync::Barrier: |barrier: Borrowed| barrier.wait();
        sync::SetOnce<Yy>: |once: Borrowed| once.wait();
        sync::SetOnce<Yn>: |once: Borrowed| once.wait();
        sync::SetOnce<Nn>: |once: Borrowed| once.wait();
        sync::OnceCell<Yy>: |once: Borrowed| once.get_or_init(|| std::future::ready(Yy));
        sync::OnceCell<Yn>: |once: Borrowed| once.get_or_init(std::future::pending::<Yn>);
        sync::OnceCell<Nn>: |once: Borrowed| once.get_or_init(std::future::pending::<Nn>);
        sync::OnceCell<Yy>: |once: Borrowed| once.get_or_try_init(|| std::future::ready(Ok::<_, u8>(Yy)));
    }
}

#[test]
fn futures_of_channels_are_sent_and_shared_as_those_of_tokio() {
    same_futures! {
        sync::mpsc::Sender<Yy>: |sender: Borrowed| sender.send(Yy);
        sync::mpsc::Sender<Yn>: |sender: Borrowed| sender.send(Yn { _value: Cell::new(0) });
        sync::mpsc::Sender<Nn>: |sender: Borrowed| sender.send(Nn { _value: Rc::new(0) });
        sync::mpsc::Sender<Yy>: |sender: Borrowed| sender.reserve();
        sync::mpsc::Sender<Nn>: |sender: Borrowed| sender.reserve();
        sync::mpsc::Sender<Yn>: |sender: Borrowed| sender.reserve_many(2);
        sync::mpsc::Sender<Yy>: |sender: Owned| sender.reserve_owned();
        sync::mpsc::Sender<Nn>: |sender: Owned| sender.reserve_owned();
        sync::mpsc::Sender<Yn>: |sender: Borrowed| sender.closed();
        sync::mpsc::Receiver<Yy>: |receiver: Mutable| receiver.recv();
        sync::mpsc::Receiver<Yn>: |receiver: Mutable| receiver.recv();
        sync::mpsc::Receiver<Nn>: |receiver: Mutable| receiver.recv();
        sync::mpsc::UnboundedReceiver<Yn>: |receiver: Mutable| receiver.recv();
        sync::oneshot::Sender<Yn>: |sender: Mutable| sender.closed();
        sync::watch::Receiver<Yy>: |receiver: Mutable| receiver.changed();
        sync::watch::Receiver<Nn>: |receiver: Mutable| receiver.changed();
        sync::watch::Receiver<Yy>: |receiver: Mutable| receiver.wait_for(|_| true);
        sync::watch::Sender<Yy>: |sender: Borrowed| sender.closed();
        sync::broadcast::Receiver<Yy>: |receiver: Mutable| receiver.recv();
        sync::broadcast::Receiver<Yn>: |receiver: Mutable| receiver.recv();
        sync::broadcast::Receiver<Nn>: |receiver: Mutable| receiver.recv();
        task::JoinSet<Yy>: |set: Mutable| set.join_next();
        task::JoinSet<Yn>: |set: Mutable| set.join_next();
        task::JoinSet<Nn>: |set: Mutable| set.join_next();
        task::JoinSet<Yy>: |set: Owned| set.join_all();
    }
}
