//! A future that waits beside another one and costs that one nothing.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

/// Runs `main` until it ends, or until what waits beside it does, and says which.
///
/// A task is told that something happened, and not what. A connection is woken for each message, and
/// a timer or a channel that is asked at each of these costs as much as a good part of a request. So
/// `aside` has a waker of its own, and is polled only when that was used.
pub(crate) async fn until<M: Future, A: Future>(
    mut main: Pin<&mut M>,
    aside: A,
) -> First<M::Output, A::Output> {
    let mut aside = pin!(aside);
    let mut bell: Option<(Arc<Bell>, Waker)> = None;
    poll_fn(|cx| {
        if let Poll::Ready(output) = main.as_mut().poll(cx) {
            return Poll::Ready(First::Main(output));
        }
        let (bell, waker) = match &mut bell {
            Some(bell) if bell.0.task.will_wake(cx.waker()) => bell,
            none_or_of_another_task => none_or_of_another_task.insert(Bell::of(cx.waker())),
        };
        if !bell.rung.load(Ordering::Relaxed) {
            return Poll::Pending;
        }
        // Before it is polled: what happens from here on rings again.
        bell.rung.swap(false, Ordering::Acquire);
        aside.as_mut().poll(&mut Context::from_waker(waker)).map(First::Aside)
    })
    .await
}

/// What ended first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum First<M, A> {
    Main(M),
    Aside(A),
}

/// Notes that a future was woken, and wakes the task that it belongs to.
struct Bell {
    rung: AtomicBool,
    task: Waker,
}

impl Bell {
    /// One that has rung: nobody has polled the future with it.
    fn of(task: &Waker) -> (Arc<Self>, Waker) {
        let bell = Arc::new(Self { rung: AtomicBool::new(true), task: task.clone() });
        (bell.clone(), bell.into())
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.rung.store(true, Ordering::Release);
        self.task.wake_by_ref();
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use tokio::sync::mpsc;
    use tokio::task::yield_now;

    use super::*;

    #[tokio::test]
    async fn what_waits_beside_is_polled_when_it_was_woken_and_at_no_other_time() {
        let (tell, mut told) = mpsc::channel(1);
        let (mut polls, mut steps) = (0, 0);
        {
            let mut listens = pin!(told.recv());
            let aside = poll_fn(|cx| {
                polls += 1;
                listens.as_mut().poll(cx)
            });
            let main = pin!(async {
                for _ in 0..10 {
                    yield_now().await;
                    steps += 1;
                }
                tell.send("over").await.unwrap();
                pending::<()>().await;
            });
            assert_eq!(until(main, aside).await, First::Aside(Some("over")));
        }
        assert_eq!((polls, steps), (2, 10));
    }

    #[tokio::test]
    async fn the_end_of_the_first_is_the_end() {
        assert_eq!(until(pin!(async { 7 }), pending::<()>()).await, First::Main(7));
        assert_eq!(until(pin!(async { 7 }), async { 1 }).await, First::Main(7));
        assert_eq!(until(pin!(pending::<()>()), async { 1 }).await, First::Aside(1));
    }

    #[tokio::test]
    async fn it_is_woken_in_the_task_to_which_it_has_moved() {
        let (tell, mut told) = mpsc::channel(1);
        let mut both = Box::pin(async move {
            let main = pin!(pending::<()>());
            until(main, told.recv()).await
        });
        // Polled here for the first time, and then in a task of its own.
        let begun = poll_fn(|cx| Poll::Ready(both.as_mut().poll(cx).is_pending()));
        assert!(begun.await);
        let moved = tokio::spawn(both);
        yield_now().await;
        tell.send(7).await.unwrap();
        assert_eq!(moved.await.unwrap(), First::Aside(Some(7)));
    }
}
