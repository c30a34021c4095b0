//! What the two receivers, and the two senders that do not keep their channel open, have in common.

/// Defines a receiver.
macro_rules! receiver {
    ($receiver:ident) => {
        #[doc = concat!("[`tokio::sync::mpsc::", stringify!($receiver), "`], recorded: the ring says that it waits.")]
        pub struct $receiver<T> {
            inner: ::tokio::sync::mpsc::$receiver<T>,
            end: $crate::sync::channel::End,
        }

        impl<T> $receiver<T> {
            #[doc = concat!("See [`tokio::sync::mpsc::", stringify!($receiver), "::recv`].")]
            #[track_caller]
            pub fn recv(&mut self) -> impl Future<Output = Option<T>> {
                self.end.wait(self.inner.recv(), Option::is_some)
            }

            #[doc = concat!("See [`tokio::sync::mpsc::", stringify!($receiver), "::recv_many`].")]
            #[track_caller]
            pub fn recv_many(
                &mut self,
                buffer: &mut Vec<T>,
                limit: usize,
            ) -> impl Future<Output = usize> {
                self.end.wait(self.inner.recv_many(buffer, limit), |&received| received > 0)
            }

            #[doc = concat!("See [`tokio::sync::mpsc::", stringify!($receiver), "::try_recv`].")]
            ///
            /// # Errors
            ///
            /// If there is no message.
            pub fn try_recv(&mut self) -> Result<T, $crate::sync::mpsc::error::TryRecvError> {
                self.end.used();
                self.inner.try_recv()
            }

            #[doc = concat!("See [`tokio::sync::mpsc::", stringify!($receiver), "::blocking_recv`].")]
            ///
            /// # Panics
            ///
            /// If the calling thread polls tasks.
            #[track_caller]
            pub fn blocking_recv(&mut self) -> Option<T> {
                $crate::blocking::block_on(self.recv())
            }

            #[doc = concat!("See [`tokio::sync::mpsc::", stringify!($receiver), "::blocking_recv_many`].")]
            ///
            /// # Panics
            ///
            /// If the calling thread polls tasks.
            #[track_caller]
            pub fn blocking_recv_many(&mut self, buffer: &mut Vec<T>, limit: usize) -> usize {
                $crate::blocking::block_on(self.recv_many(buffer, limit))
            }

            $crate::forward::forward! {
                tokio::sync::mpsc::$receiver;
                fn close(&mut self);
                fn is_closed(&self) -> bool;
                fn is_empty(&self) -> bool;
                fn len(&self) -> usize;
                fn sender_strong_count(&self) -> usize;
                fn sender_weak_count(&self) -> usize;
            }

            #[doc = concat!("See [`tokio::sync::mpsc::", stringify!($receiver), "::poll_recv`]. It records nothing.")]
            pub fn poll_recv(
                &mut self,
                cx: &mut ::std::task::Context<'_>,
            ) -> ::std::task::Poll<Option<T>> {
                self.end.used();
                self.inner.poll_recv(cx)
            }

            #[doc = concat!(
                "See [`tokio::sync::mpsc::", stringify!($receiver), "::poll_recv_many`]. It records nothing."
            )]
            pub fn poll_recv_many(
                &mut self,
                cx: &mut ::std::task::Context<'_>,
                buffer: &mut Vec<T>,
                limit: usize,
            ) -> ::std::task::Poll<usize> {
                self.end.used();
                self.inner.poll_recv_many(cx, buffer, limit)
            }

            /// Tokio's receiver, for what asks for that one, as streams do. Its waits are not recorded.
            pub fn into_inner(self) -> ::tokio::sync::mpsc::$receiver<T> {
                self.end.forget();
                self.inner
            }

            $crate::sync::channel::set_name!(end.channel());
        }

        $crate::forward::debug_as_inner!($receiver<T>);
    };
}
pub(super) use receiver;

/// Defines a sender that does not keep its channel open, and what a sender has to do with it.
macro_rules! weak_sender {
    ($weak:ident, $sender:ident) => {
        #[doc = concat!("See [`tokio::sync::mpsc::", stringify!($weak), "`].")]
        pub struct $weak<T> {
            inner: ::tokio::sync::mpsc::$weak<T>,
            end: $crate::sync::channel::End,
        }

        impl<T> $weak<T> {
            #[doc = concat!("See [`tokio::sync::mpsc::", stringify!($weak), "::upgrade`].")]
            pub fn upgrade(&self) -> Option<$sender<T>> {
                let inner = self.inner.upgrade()?;
                Some($sender { inner, end: self.end.channel().sender() })
            }

            $crate::forward::forward! {
                tokio::sync::mpsc::$weak;
                fn strong_count(&self) -> usize;
                fn weak_count(&self) -> usize;
            }
        }

        impl<T> Clone for $weak<T> {
            fn clone(&self) -> $weak<T> {
                $weak { inner: self.inner.clone(), end: self.end.channel().weak_sender() }
            }
        }

        $crate::forward::debug_as_inner!($weak<T>);

        impl<T> $sender<T> {
            #[doc = concat!("See [`tokio::sync::mpsc::", stringify!($sender), "::closed`].")]
            #[track_caller]
            pub fn closed(&self) -> impl Future<Output = ()> {
                self.end.channel().wait(self.inner.closed(), |()| true)
            }

            $crate::forward::forward! {
                tokio::sync::mpsc::$sender;
                fn is_closed(&self) -> bool;
                fn same_channel(&self, other: &Self) -> bool;
                fn strong_count(&self) -> usize;
                fn weak_count(&self) -> usize;
            }

            #[doc = concat!("See [`tokio::sync::mpsc::", stringify!($sender), "::downgrade`].")]
            pub fn downgrade(&self) -> $weak<T> {
                $weak { inner: self.inner.downgrade(), end: self.end.channel().weak_sender() }
            }

            $crate::sync::channel::set_name!(end.channel());
        }

        impl<T> Clone for $sender<T> {
            fn clone(&self) -> $sender<T> {
                $sender { inner: self.inner.clone(), end: self.end.clone() }
            }
        }

        $crate::forward::debug_as_inner!($sender<T>);
    };
}
pub(super) use weak_sender;
