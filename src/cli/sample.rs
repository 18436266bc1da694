//! The sample agent inside `ringer up`: it is started when somebody first asks for it, on a free port of this machine.

use std::sync::Arc;

use ringer_media::codec::Codec;
use tokio::sync::Mutex;

use super::local;
use crate::agent::{Desk, Ways};
use crate::api::SampleAgent;
use crate::config::SipListen;
use crate::tasks::Tasks;
use crate::transport::sip::tls::TlsSettings;

/// Ports for its media: none of those that engines use unasked.
const RTP_PORTS: std::ops::RangeInclusive<u16> = 34_000..=34_399;

/// A sample agent and its address.
type At = (Arc<Desk>, String);

/// The one sample agent of a process.
#[derive(Clone, Default)]
pub(crate) struct Sample {
    running: Arc<Mutex<Option<At>>>,
    tasks: Tasks,
}

impl Sample {
    /// Returns what starts it for the API.
    pub(crate) fn starter(&self) -> SampleAgent {
        let sample = self.clone();
        Arc::new(move || {
            let sample = sample.clone();
            Box::pin(async move { sample.address().await })
        })
    }

    /// Returns its address; it is started where it does not run.
    async fn address(&self) -> Result<String, String> {
        let mut running = self.running.lock().await;
        if let Some((_, address)) = &*running {
            return Ok(address.clone());
        }
        let voice = local::voice(&Desk::voice_wanted())?;
        let listen: SipListen = "127.0.0.1:0".parse().map_err(|_| "127.0.0.1:0 is no address".to_owned())?;
        let (engine, incoming) = local::engine(listen, RTP_PORTS, TlsSettings::default()).await?;
        let codecs = vec![Codec::G722, Codec::Pcmu, Codec::Pcma];
        let address = engine.sip_addresses().all().map(|(_, address)| format!("sip:desk@{address}")).next();
        let address = address.ok_or_else(|| "it has no socket".to_owned())?;
        let desk = Desk::new(engine, voice, None, codecs, None);
        let served = desk.clone();
        self.tasks.spawn("sample agent", async move { served.serve(incoming, Ways::default(), None).await });
        *running = Some((desk, address.clone()));
        Ok(address)
    }

    /// Ends its calls, and the agent.
    pub(crate) async fn stop(&self) {
        if let Some((desk, _)) = self.running.lock().await.take() {
            desk.stop().await;
        }
        self.tasks.stop().await;
    }
}
