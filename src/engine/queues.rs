//! Queues between the driver of a call and the task that holds its connections: orders one way, news and steps the other.

use ringer_media::call::Quality;
use tokio::sync::mpsc;

use crate::transport::webrtc::PumpFigures;

/// News that may wait for the driver.
const NEWS: usize = 256;

/// Orders that may wait for the task.
const ORDERS: usize = 64;

/// Steps in the life of a connection.
const STEPS: usize = 2;

/// Order in which the driver takes what waits.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// Steps are taken alone; news wait.
    StepsAlone,
    /// Steps are taken before news.
    StepsFirst,
    /// News are taken before steps.
    NewsFirst,
}

/// The driver's ends of the queues: orders `O`, news `N`, steps `S`.
pub(super) struct Queues<O, N, S> {
    orders: mpsc::Sender<O>,
    news: mpsc::Receiver<N>,
    steps: mpsc::Receiver<S>,
    unsent: u64,
}

/// The task's ends of the queues.
pub(super) struct Line<O, N, S> {
    pub orders: mpsc::Receiver<O>,
    pub told: mpsc::Sender<N>,
    pub steps: mpsc::Sender<S>,
}

/// One thing that the task has told.
pub(super) enum Told<N, S> {
    /// News of the connections.
    News(N),
    /// Step in the life of the connections.
    Step(S),
}

impl<O, N, S> Queues<O, N, S> {
    /// Returns the driver's ends of new queues, and those of the task.
    pub fn new() -> (Queues<O, N, S>, Line<O, N, S>) {
        let (orders, to_do) = mpsc::channel(ORDERS);
        let (tell, news) = mpsc::channel(NEWS);
        let (step, steps) = mpsc::channel(STEPS);
        (Queues { orders, news, steps, unsent: 0 }, Line { orders: to_do, told: tell, steps: step })
    }

    /// Returns what the task tells next; `None` when the task is gone. Safe to drop and call again.
    pub async fn next(&mut self, turn: Turn) -> Option<Told<N, S>> {
        let Queues { news, steps, .. } = self;
        match turn {
            Turn::StepsAlone => steps.recv().await.map(Told::Step),
            Turn::StepsFirst => tokio::select! {
                biased;
                Some(step) = steps.recv() => Some(Told::Step(step)),
                Some(news) = news.recv() => Some(Told::News(news)),
                else => None,
            },
            Turn::NewsFirst => tokio::select! {
                biased;
                Some(news) = news.recv() => Some(Told::News(news)),
                Some(step) = steps.recv() => Some(Told::Step(step)),
                else => None,
            },
        }
    }

    /// Returns news that came before the end and were not read.
    pub fn rest(&mut self) -> Option<N> {
        self.news.try_recv().ok()
    }

    /// Gives an order to the task.
    pub fn order(&mut self, order: O) {
        if let Err(mpsc::error::TrySendError::Full(_)) = self.orders.try_send(order) {
            self.unsent += 1;
        }
    }

    /// Ends the connections, whatever waits.
    pub fn hang_up(&mut self) {
        // Without a sender the task hangs up.
        let (closed, _) = mpsc::channel(1);
        self.orders = closed;
    }

    /// Returns the number of orders that found no room.
    pub fn unsent_count(&self) -> u64 {
        self.unsent
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
