//! State that all tasks of an engine's calls share: orders to media threads, the SIP sockets, speech, the clock and
//! tasks.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use ringer_base::clock::random_bytes;
use ringer_base::config::{Encryption, SrtpKeys};
use ringer_base::tasks::Tasks;
use ringer_sip::sdp::Offer;
use ringer_transport::dtls::Identity;
use ringer_transport::sip::driver::SipSocket;
use ringer_transport::sip::names::Resolver;
use ringer_transport::sip::sdp;
use ringer_transport::sip::transfer::TargetCall;
use tokio::runtime::Handle;
use tokio::sync::{Notify, mpsc};

use super::counters::Counters;
use super::shard::{CallNo, FromShard, ToShard};
use super::shard_handle::ShardHandle;
use super::{CallControl, EngineConfig, PlaceError, Speech};

/// State shared by the tasks of an engine's calls.
pub(super) struct CallServices {
    pub config: EngineConfig,
    pub sip: SipSocket,
    pub shards: Vec<ShardHandle>,
    pub counters: Arc<Counters>,
    pub speech: Speech,
    pub tasks: Tasks,
    /// Senders of the media threads' messages to the task of each call.
    pub calls: Mutex<HashMap<CallNo, mpsc::Sender<FromShard>>>,
    pub controls: Mutex<HashMap<CallNo, CallControl>>,
    /// Calls that are being made or live.
    pub live: AtomicUsize,
    /// Told when the last of them is over.
    pub idle: Notify,
    pub clock: ringer_base::clock::Clock,
    /// Threads for everything that is not bound to the time of audio.
    pub runtime: Handle,
    /// Certificate for handshakes that bring keys of secure RTP.
    pub identity: Identity,
}

/// One of the `max_calls` permits to have a call; given back when it is dropped.
pub(super) struct CallPermit(Arc<CallServices>);

impl Drop for CallPermit {
    fn drop(&mut self) {
        if self.0.live.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.0.idle.notify_waiters();
        }
    }
}

impl CallServices {
    /// Starts a task that is not bound to the time of audio, whatever threads this is called on.
    pub(crate) fn spawn<F>(&self, name: &'static str, future: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.tasks.spawn_on(&self.runtime, name, future);
    }

    /// Returns a permit for one more call.
    ///
    /// # Errors
    /// [`PlaceError::Full`] when there are `max_calls` calls.
    pub(crate) fn permit(self: &Arc<Self>) -> Result<CallPermit, PlaceError> {
        let permit = CallPermit(self.clone());
        let before = self.live.fetch_add(1, Ordering::SeqCst);
        if before >= self.config.max_calls { Err(PlaceError::Full) } else { Ok(permit) }
    }

    /// Waits until no call is being made or live.
    pub(crate) async fn wait_idle(&self) {
        let mut idle = pin!(self.idle.notified());
        loop {
            // From here on no news is missed.
            idle.as_mut().enable();
            if self.live.load(Ordering::SeqCst) == 0 {
                return;
            }
            idle.as_mut().await;
            idle.set(self.idle.notified());
        }
    }

    /// Returns the offer with keys of its own, of both kinds, where the call has secure RTP.
    pub(crate) fn secure_offer(&self, plain: Offer, srtp: Encryption, keys: SrtpKeys) -> Offer {
        let secured = sdp::secure(plain, srtp, random_bytes);
        match srtp {
            Encryption::Off => secured,
            _ => sdp::with_handshake(secured, keys, self.identity.fingerprint(), random_bytes),
        }
    }

    /// Returns the offer to the target of a transfer at a media port: codec and encryption in use, with keys of its
    /// own.
    pub(crate) fn target_offer(&self, call: &TargetCall, port: u16, no: CallNo) -> String {
        let plain = sdp::offer(&[call.media.codec], self.sip.local().ip(), port, no.0);
        let offer = match call.media {
            media if media.awaits_keys() => self.secure_offer(plain, Encryption::Required, SrtpKeys::Dtls),
            media if media.srtp.is_some() => sdp::secure(plain, Encryption::Required, random_bytes),
            _ => plain,
        };
        offer.session().to_string()
    }

    /// Returns what SIP hosts are looked up by.
    pub(crate) fn names(&self) -> &Resolver {
        &self.config.names
    }

    /// Hands an order to a media thread; waits for space in its ring.
    pub(crate) fn order(&self, shard: usize, order: ToShard) {
        self.shards[shard].order(order);
    }

    /// Forgets a call that is over: nobody waits for its messages any more.
    pub(crate) fn forget(&self, no: CallNo) {
        self.calls.lock().remove(&no);
        self.controls.lock().remove(&no);
    }
}
