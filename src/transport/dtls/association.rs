//! One DTLS association, as the library drives it.

use std::net::{Ipv4Addr, SocketAddr};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ringer_media::rtp::srtp::{MasterKey, SrtpParams, Suite};
use rtc_dtls::config::{ClientAuthType, ConfigBuilder, HandshakeConfig};
use rtc_dtls::endpoint::{Endpoint, EndpointEvent};
use rtc_dtls::extension::extension_use_srtp::SrtpProtectionProfile;

use super::repeats::Repeats;
use super::{Expected, Identity};

/// First wait for an answer to a flight; half of what RFC 6347 4.2.4.1 names, since a caller waits to be heard.
const FLIGHT: Duration = Duration::from_millis(500);

/// Longest datagram that is sent, bytes.
const MTU: usize = 1200;

/// Label of the keys (RFC 5764 4.2).
const LABEL: &str = "EXTRACTOR-dtls_srtp";

/// Bytes that an association takes before it has keys: a handshake is a tenth of it.
const MOST_BYTES: usize = 64 * 1024;

/// Profiles, best first (RFC 5764 4.1.2, RFC 7714 14.2).
const PROFILES: [SrtpProtectionProfile; 2] =
    [SrtpProtectionProfile::Srtp_Aes128_Cm_Hmac_Sha1_80, SrtpProtectionProfile::Srtp_Aead_Aes_128_Gcm];

/// Reason why a handshake gave no keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The certificate has none of the fingerprints.
    Certificate,
    /// Another reason, for a person.
    Broken(String),
}

/// A handshake, and what is left of it.
pub(super) struct Association {
    endpoint: Endpoint,
    /// A certificate came that has none of the fingerprints.
    is_wrong: Arc<AtomicBool>,
    expected: Expected,
    repeats: Repeats,
    taken: usize,
    is_done: bool,
}

impl Association {
    /// Returns an association that begins at `now` where this side is the client, and else waits.
    pub(super) fn new(identity: &Identity, expected: Expected, now: Instant) -> Result<Association, Fault> {
        let is_wrong = Arc::<AtomicBool>::default();
        let config = Arc::new(config(identity, expected, is_wrong.clone())?);
        let server = (!expected.active).then(|| config.clone());
        let mut endpoint = Endpoint::new(nowhere(), Default::default(), server);
        if expected.active {
            catch_faults(|| endpoint.connect(now, nowhere(), config, None).map_err(|error| error.to_string()))?;
        }
        let repeats = Repeats::default();
        Ok(Association { endpoint, is_wrong, expected, repeats, taken: 0, is_done: false })
    }

    /// True once there were keys.
    pub(super) fn is_done(&self) -> bool {
        self.is_done
    }

    /// Takes a datagram; the keys, when it was the last that was needed for them.
    ///
    /// # Errors
    /// The handshake is over without keys.
    pub(super) fn receive(&mut self, datagram: &[u8], now: Instant) -> Result<Option<SrtpParams>, Fault> {
        if !self.is_done {
            self.taken += datagram.len();
            if self.taken > MOST_BYTES {
                return Err(Fault::Broken("it takes too many datagrams".to_owned()));
            }
            if self.repeats.are_all(datagram) {
                return Ok(None);
            }
        }
        let endpoint = &mut self.endpoint;
        let read =
            catch_faults(|| endpoint.read(now, nowhere(), None, datagram.into()).map_err(|error| error.to_string()));
        let events = match read {
            Ok(events) => events,
            // An existing state is not undone by a datagram that anybody may have made.
            Err(_) if self.is_done => return Ok(None),
            Err(_) if self.is_wrong.load(Ordering::Relaxed) => return Err(Fault::Certificate),
            Err(fault) => return Err(fault),
        };
        if !self.is_done && events.iter().any(|event| matches!(event, EndpointEvent::HandshakeComplete)) {
            let keys = self.keys()?;
            self.is_done = true;
            return Ok(Some(keys));
        }
        if !self.is_done && events.iter().any(|event| matches!(event, EndpointEvent::PeerClosed)) {
            return Err(Fault::Broken("the other side closed it".to_owned()));
        }
        Ok(None)
    }

    /// Returns the time at which [`Association::wake`] is due.
    pub(super) fn due(&self) -> Option<Instant> {
        self.endpoint.poll_timeout(&nowhere())
    }

    /// Sends what was not answered again.
    ///
    /// # Errors
    /// It was sent often enough.
    pub(super) fn wake(&mut self, now: Instant) -> Result<(), Fault> {
        if self.due().is_none_or(|due| due > now) {
            return Ok(());
        }
        let endpoint = &mut self.endpoint;
        catch_faults(|| endpoint.handle_timeout(nowhere(), now).map_err(|_| "nothing answers".to_owned()))
    }

    /// Returns the next datagram to send.
    pub(super) fn datagram(&mut self) -> Option<Vec<u8>> {
        self.endpoint.poll_transmit().map(|sent| sent.message.to_vec())
    }

    /// Reads the keys of a handshake that is complete (RFC 5764 4.2).
    fn keys(&self) -> Result<SrtpParams, Fault> {
        let broken = |why: &str| Fault::Broken(why.to_owned());
        let state = self.endpoint.get_connection_state(nowhere()).ok_or_else(|| broken("it is gone"))?;
        // The library has asked already: an association without a certificate that was checked is not to pass by any
        // way.
        let leaf = state.peer_certificates.first().ok_or(Fault::Certificate)?;
        if !self.expected.is_of(leaf) {
            return Err(Fault::Certificate);
        }
        let suite = match state.srtp_protection_profile() {
            SrtpProtectionProfile::Srtp_Aes128_Cm_Hmac_Sha1_80 => Suite::AesCm128HmacSha1_80,
            SrtpProtectionProfile::Srtp_Aead_Aes_128_Gcm => Suite::AeadAes128Gcm,
            _ => return Err(broken("no common profile of secure RTP")),
        };
        let (key, salt) = (16, suite.salt_bytes());
        let material = state.export_keying_material(LABEL, &[], 2 * (key + salt)).map_err(|_| broken("no keys"))?;
        let (keys, salts) = material.as_ref().split_at(2 * key);
        let of = |side: usize| {
            let whole = [&keys[side * key..][..key], &salts[side * salt..][..salt]].concat();
            MasterKey::new(suite, &whole).ok_or_else(|| broken("keys of another length"))
        };
        // The client's stand first.
        let (own, other) = if self.expected.active { (0, 1) } else { (1, 0) };
        Ok(SrtpParams { suite, send: of(own)?, receive: of(other)? })
    }
}

fn config(identity: &Identity, expected: Expected, is_wrong: Arc<AtomicBool>) -> Result<HandshakeConfig, Fault> {
    let check = move |chain: &[Vec<u8>]| {
        let is_right = chain.first().is_some_and(|leaf| expected.is_of(leaf));
        is_wrong.fetch_or(!is_right, Ordering::Relaxed);
        if is_right { Ok(()) } else { Err(std::io::Error::other("no fingerprint of it is known").into()) }
    };
    let builder = ConfigBuilder::default()
        .with_crypto_provider(identity.provider.clone())
        .with_certificates(vec![identity.certificate.clone()])
        .with_srtp_protection_profiles(PROFILES.to_vec())
        .with_client_auth(ClientAuthType::RequireAnyClientCert)
        // The fingerprint takes the place of a chain of certificates (RFC 5763 5).
        .with_insecure_skip_verify(true)
        .with_verify_peer_certificate(Some(Arc::new(move |chain, _| check(chain))))
        .with_server_name("ringer.invalid".to_owned())
        .with_flight_interval(FLIGHT)
        .with_mtu(MTU);
    builder.build(expected.active, None).map_err(|error| Fault::Broken(error.to_string()))
}

/// Returns an address for the library, which tells associations apart by address: here each has an endpoint of its own.
fn nowhere() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 1))
}

/// Runs `work` of the library on data of a stranger. A panic in it ends the handshake, and not the call's task.
fn catch_faults<T>(work: impl FnOnce() -> Result<T, String>) -> Result<T, Fault> {
    let done = catch_unwind(AssertUnwindSafe(work));
    done.unwrap_or_else(|_| Err("the handshake could not be carried on".to_owned())).map_err(Fault::Broken)
}
