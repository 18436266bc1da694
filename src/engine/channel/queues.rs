//! Queues between the task of a call and the task that holds its connections: orders one way, news and steps the other.

use ringer_media::call::Quality;
use ringer_transport::news::{LostNews, NewsSender};
use ringer_transport::webrtc::PumpFigures;
use tokio::sync::mpsc;

/// News that may wait for the call task.
const NEWS: usize = 256;

/// Orders that may wait for the task.
const ORDERS: usize = 64;

/// Steps in the life of a connection.
const STEPS: usize = 2;

/// Order in which the call task takes what waits.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Precedence {
    /// Steps are taken alone; news wait.
    StepsAlone,
    /// Steps are taken before news.
    StepsFirst,
    /// News are taken before steps.
    NewsFirst,
}

/// The call task's ends of the queues: orders `O`, news `N`, steps `S`.
pub(crate) struct Queues<O, N, S> {
    orders: mpsc::Sender<O>,
    news: mpsc::Receiver<N>,
    steps: mpsc::Receiver<S>,
    unsent: u64,
    lost: LostNews,
}

/// The task's ends of the queues.
pub(crate) struct Line<O, N, S> {
    pub orders: mpsc::Receiver<O>,
    pub news: NewsSender<N>,
    pub steps: mpsc::Sender<S>,
}

/// One thing that the task has told.
pub(crate) enum Queued<N, S> {
    /// News of the connections.
    News(N),
    /// Step in the life of the connections.
    Step(S),
}

impl<O, N, S> Queues<O, N, S> {
    /// Returns the call task's ends of new queues, and those of the task.
    pub(crate) fn new() -> (Queues<O, N, S>, Line<O, N, S>) {
        let (orders, to_do) = mpsc::channel(ORDERS);
        let (sender, news) = NewsSender::new(NEWS);
        let (step, steps) = mpsc::channel(STEPS);
        (
            Queues { orders, news, steps, unsent: 0, lost: sender.lost_news() },
            Line { orders: to_do, news: sender, steps: step },
        )
    }

    /// Returns what the task tells next; `None` when the task is gone. Safe to drop and call again.
    pub(crate) async fn next(&mut self, precedence: Precedence) -> Option<Queued<N, S>> {
        let Queues { news, steps, .. } = self;
        match precedence {
            Precedence::StepsAlone => steps.recv().await.map(Queued::Step),
            Precedence::StepsFirst => tokio::select! {
                biased;
                Some(step) = steps.recv() => Some(Queued::Step(step)),
                Some(news) = news.recv() => Some(Queued::News(news)),
                else => None,
            },
            Precedence::NewsFirst => tokio::select! {
                biased;
                Some(news) = news.recv() => Some(Queued::News(news)),
                Some(step) = steps.recv() => Some(Queued::Step(step)),
                else => None,
            },
        }
    }

    /// Returns news that came before the end and were not read.
    pub(crate) fn rest(&mut self) -> Option<N> {
        self.news.try_recv().ok()
    }

    /// Gives an order to the task.
    pub(crate) fn order(&mut self, order: O) {
        if let Err(mpsc::error::TrySendError::Full(_)) = self.orders.try_send(order) {
            self.unsent += 1;
        }
    }

    /// Ends the connections, whatever waits.
    pub(crate) fn hang_up(&mut self) {
        // Without a sender the task hangs up.
        let (closed, _) = mpsc::channel(1);
        self.orders = closed;
    }

    /// Returns warnings about this side: orders that did not fit, and news that it did not take in time. `other`
    /// names the other side.
    pub(crate) fn warnings(&self, other: &str) -> Vec<String> {
        let lost = format!("events of {other} are missing: this side was held up and did not take them in time");
        warnings_of(&[(self.unsent, &format!("messages to {other} were not sent")), (self.lost.count(), &lost)])
    }
}

/// Adds what was measured where packets pass to the figures of the media thread.
pub(super) fn add_figures(PumpFigures { pacing, late, lost }: &PumpFigures, quality: &mut Quality) {
    quality.pacing_p99_ms = quality.pacing_p99_ms.max(pacing.quantile_ms(0.99));
    quality.pacing_max_ms = quality.pacing_max_ms.max(pacing.max_ms());
    quality.late_frames += late;
    quality.late_packets += lost;
}

/// Returns a warning for each count that is not zero: the count, then its words.
pub(super) fn warnings_of(counts: &[(u64, &str)]) -> Vec<String> {
    counts.iter().filter(|(count, _)| *count > 0).map(|(count, words)| format!("{count} {words}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A driver that is held up misses news, and says how many.
    #[tokio::test]
    async fn news_that_were_not_taken_in_time_are_told() {
        let (mut queues, line) = Queues::<(), usize, ()>::new();
        assert_eq!(queues.warnings("the room"), Vec::<String>::new());
        (0..NEWS + 3).for_each(|n| line.news.send(n));
        (0..ORDERS + 1).for_each(|_| queues.order(()));
        let lost = "3 events of the room are missing: this side was held up and did not take them in time";
        assert_eq!(queues.warnings("the room"), ["1 messages to the room were not sent", lost]);
        assert!(matches!(queues.next(Precedence::NewsFirst).await, Some(Queued::News(0))));
    }
}
