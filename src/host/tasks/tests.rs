//! Tools while there is no room for their results.

use super::*;
use futures_util::stream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::Waker;

/// A tool that is done at its second poll, and the number of its polls.
fn tool() -> (RunningTool, Arc<AtomicU32>) {
    let polls = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&polls);
    let running = stream::poll_fn(move |_| match counted.fetch_add(1, Ordering::Relaxed) {
        0 => Poll::Pending,
        _ => Poll::Ready(Some(CallStep::Ended(ToolResult::Success("noon".to_owned())))),
    });
    (Box::pin(running), polls)
}

/// Without room a tool goes on to its result, which waits and is given once.
#[test]
fn results_of_tools_wait_for_room() {
    let mut context = Context::from_waker(Waker::noop());
    let (mut tasks, (running, polls)) = (Tasks::default(), tool());
    tasks.start_tool(TaskId(7), running);
    for expected in [1, 2, 2] {
        assert!(tasks.poll_next(&mut context, false).is_pending());
        assert_eq!(polls.load(Ordering::Relaxed), expected);
    }
    let Poll::Ready((TaskId(7), TaskEvent::ToolEnded(result))) =
        tasks.poll_next(&mut context, true)
    else {
        panic!("no result");
    };
    assert_eq!(result, ToolResult::Success("noon".to_owned()));
    assert!(tasks.poll_next(&mut context, true).is_pending());
    assert_eq!(polls.load(Ordering::Relaxed), 2, "a tool was polled after its end");
}

/// Of the progress that comes while there is no room only the newest is given, and none after the result.
#[test]
fn progress_waits_for_room_and_is_never_more_than_one_report() {
    let mut context = Context::from_waker(Waker::noop());
    let mut tasks = Tasks::default();
    let progress = |progress| CallProgress { progress, total: None, message: String::new() };
    let mut steps = vec![
        Poll::Ready(Some(CallStep::Progress(progress(1.0)))),
        Poll::Ready(Some(CallStep::Progress(progress(2.0)))),
        Poll::Pending,
        Poll::Pending,
        Poll::Ready(Some(CallStep::Progress(progress(3.0)))),
        Poll::Ready(Some(CallStep::Ended(ToolResult::Success("noon".to_owned())))),
    ]
    .into_iter();
    let running = stream::poll_fn(move |_| steps.next().expect("it is polled no more"));
    tasks.start_tool(TaskId(7), Box::pin(running));
    assert!(tasks.poll_next(&mut context, false).is_pending());
    let Poll::Ready((TaskId(7), TaskEvent::ToolProgressed(newest))) =
        tasks.poll_next(&mut context, true)
    else {
        panic!("no progress");
    };
    assert_eq!(newest, progress(2.0));
    let next = tasks.poll_next(&mut context, true);
    assert!(matches!(next, Poll::Ready((_, TaskEvent::ToolEnded(_)))), "{next:?}");
    assert!(tasks.poll_next(&mut context, true).is_pending());
}

/// A result that waits is dropped with its task.
#[test]
fn a_cancelled_tool_has_no_result() {
    let mut context = Context::from_waker(Waker::noop());
    let mut tasks = Tasks::default();
    for id in [7, 8] {
        tasks.start_tool(TaskId(id), tool().0);
    }
    for _ in 0..2 {
        assert!(tasks.poll_next(&mut context, false).is_pending());
    }
    tasks.cancel(TaskId(7));
    let next = tasks.poll_next(&mut context, true);
    assert!(matches!(next, Poll::Ready((TaskId(8), TaskEvent::ToolEnded(_)))), "{next:?}");
    assert!(tasks.poll_next(&mut context, true).is_pending());
}
