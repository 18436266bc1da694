//! The SIP dialogs of one live call: its own, that with the target of a transfer while it is called, and those that it
//! has left.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};

use ringer_sip::{CallKey, Hop};
use ringer_transport::sip::dialog::SipNews;
use tokio::sync::{mpsc, oneshot};

/// Result of looking an address up: why there is none, for a person.
pub(super) type Located = Result<Vec<Hop>, String>;

/// Dialogs of a call.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Of {
    /// The one whose media are the call's.
    Call,
    /// Dialog with the target of a transfer.
    Target,
    /// One that the call has left; its last messages still belong into the log.
    Past,
}

/// News of the signalling.
#[derive(Debug)]
pub(crate) enum News {
    /// An event or a message of a dialog.
    Sip(SipNews),
    /// The address of the target of a transfer.
    Located(Located),
}

/// Dialogs of one call, of which at most two are in use.
#[derive(Default)]
pub(crate) struct Dialogs {
    call: Option<Dialog>,
    target: Option<Dialog>,
    past: Vec<Dialog>,
    address: Option<oneshot::Receiver<Located>>,
}

struct Dialog {
    key: CallKey,
    /// `None` once nothing more comes.
    news: Option<mpsc::Receiver<SipNews>>,
}

impl Dialog {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<SipNews>> {
        let Some(news) = &mut self.news else { return Poll::Ready(None) };
        let polled = news.poll_recv(context);
        if matches!(polled, Poll::Ready(None)) {
            self.news = None;
        }
        polled
    }
}

impl Dialogs {
    /// Takes the dialog that the call begins with.
    pub(crate) fn begin(&mut self, key: CallKey, news: mpsc::Receiver<SipNews>) {
        self.call = Some(Dialog { key, news: Some(news) });
    }

    /// Takes the dialog with the target of a transfer; an earlier one has no outcome any more.
    pub(crate) fn add_target(&mut self, key: CallKey, news: mpsc::Receiver<SipNews>) {
        self.past.extend(self.target.replace(Dialog { key, news: Some(news) }));
    }

    /// Makes the dialog with the target that of the call.
    pub(crate) fn switch(&mut self) {
        if let Some(target) = self.target.take() {
            self.past.extend(self.call.replace(target));
        }
    }

    /// Returns the name of a dialog at the socket.
    pub(crate) fn key(&self, of: Of) -> Option<CallKey> {
        let dialog = match of {
            Of::Call => &self.call,
            Of::Target => &self.target,
            Of::Past => &None,
        };
        dialog.as_ref().map(|dialog| dialog.key)
    }

    /// Returns the end that takes the address of a target; one that is still awaited is not any more.
    pub(crate) fn await_address(&mut self) -> oneshot::Sender<Located> {
        let (found, address) = oneshot::channel();
        self.address = Some(address);
        found
    }

    /// Waits for news; `None` when none will come. Nothing is lost when it is given up.
    pub(crate) async fn next(&mut self) -> Option<(Of, News)> {
        poll_fn(|context| self.poll(context)).await
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<(Of, News)>> {
        if let Some(address) = &mut self.address
            && let Poll::Ready(found) = Pin::new(address).poll(context)
        {
            self.address = None;
            return Poll::Ready(Some((
                Of::Call,
                News::Located(found.unwrap_or_else(|_| Err("the engine stops".to_owned()))),
            )));
        }
        let current = [(Of::Call, &mut self.call), (Of::Target, &mut self.target)];
        let current = current.into_iter().filter_map(|(of, dialog)| Some((of, dialog.as_mut()?)));
        let mut is_over = self.address.is_none();
        for (of, dialog) in current.chain(self.past.iter_mut().map(|dialog| (Of::Past, dialog))) {
            match dialog.poll(context) {
                Poll::Ready(Some(news)) => return Poll::Ready(Some((of, News::Sip(news)))),
                Poll::Ready(None) => {}
                Poll::Pending => is_over = false,
            }
        }
        self.past.retain(|dialog| dialog.news.is_some());
        if is_over { Poll::Ready(None) } else { Poll::Pending }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dialog() -> (mpsc::Sender<SipNews>, mpsc::Receiver<SipNews>) {
        mpsc::channel(4)
    }

    async fn next(dialogs: &mut Dialogs) -> Option<(Of, String)> {
        dialogs.next().await.map(|(of, news)| match news {
            News::Sip(SipNews::Trace(text)) => (of, text),
            other => (of, format!("{other:?}")),
        })
    }

    #[tokio::test]
    async fn news_come_from_every_dialog_until_all_are_over() {
        let ((first, news), (second, more)) = (dialog(), dialog());
        let trace = |text: &str| SipNews::Trace(text.to_owned());
        let mut dialogs = Dialogs::default();
        dialogs.begin(CallKey(1), news);
        assert_eq!((dialogs.key(Of::Call), dialogs.key(Of::Target)), (Some(CallKey(1)), None));
        dialogs.add_target(CallKey(2), more);
        second.send(trace("ringing")).await.expect("there is space");
        assert_eq!(next(&mut dialogs).await, Some((Of::Target, "ringing".to_owned())));
        dialogs.switch();
        assert_eq!((dialogs.key(Of::Call), dialogs.key(Of::Target)), (Some(CallKey(2)), None));
        first.send(trace("BYE")).await.expect("there is space");
        assert_eq!(next(&mut dialogs).await, Some((Of::Past, "BYE".to_owned())));
        drop(first);
        second.send(trace("talk")).await.expect("there is space");
        assert_eq!(next(&mut dialogs).await, Some((Of::Call, "talk".to_owned())));
        drop(second);
        assert_eq!(next(&mut dialogs).await, None);
        assert_eq!(dialogs.key(Of::Call), Some(CallKey(2)), "orders still go there");
    }

    #[tokio::test]
    async fn an_address_is_awaited_beside_the_dialogs() {
        let mut dialogs = Dialogs::default();
        let found = dialogs.await_address();
        found.send(Err("its host has no address".to_owned())).expect("it is awaited");
        let news = next(&mut dialogs).await;
        assert_eq!(news, Some((Of::Call, "Located(Err(\"its host has no address\"))".to_owned())));
        drop(dialogs.await_address());
        assert_eq!(next(&mut dialogs).await, Some((Of::Call, "Located(Err(\"the engine stops\"))".to_owned())));
        assert_eq!(next(&mut dialogs).await, None);
    }
}
