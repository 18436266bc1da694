//! Agreement on the protection of a stream: keys in the description (RFC 4568), keys of a handshake (RFC 5763), or both
//! offered in one stream, as opportunistic offers do (RFC 8643).

use super::{Crypto, Dtls, Handshake, Media, Negotiated, Offer, Protection, Refusal, Session, Setup};

/// Origin of the keys of a stream.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Default)]
pub enum KeyOrigin {
    /// Keys from the session description.
    #[default]
    Sdes,
    /// Keys from a DTLS handshake.
    Dtls,
    /// Keys from either of them.
    Any,
}

/// Protection as one answer tells it, and its meaning.
#[derive(Clone, Debug)]
pub(super) enum Agreed {
    /// No protection: plain RTP.
    Plain,
    /// The line of the answer, and both keys.
    Sdes(Crypto, Protection),
    /// The lines of the answer, and the handshake.
    Dtls(Dtls, Handshake),
}

/// True when the profile is one of secure RTP (RFC 3711 12, RFC 5124, RFC 5764 8).
pub(super) fn is_secure(media: &Media) -> bool {
    matches!(media.protocol.as_str(), "RTP/SAVP" | "RTP/SAVPF") || is_keyed_by_dtls(media)
}

fn is_keyed_by_dtls(media: &Media) -> bool {
    matches!(media.protocol.as_str(), "UDP/TLS/RTP/SAVP" | "UDP/TLS/RTP/SAVPF")
}

/// Returns the lines of `a=crypto` that this side understands, in their order.
pub(super) fn crypto(media: &Media) -> impl Iterator<Item = Crypto> {
    media.values("crypto").filter_map(Crypto::parse)
}

/// Returns what an answerer takes of the offered `remote`: of lines of `a=crypto` the first that it can do, with its
/// own key (RFC 4568 7.1.2). Where both kinds of keys are offered, `Offer::key_origin` decides.
pub(super) fn take(session: &Session, remote: &Media, local: &Offer) -> Result<Agreed, Refusal> {
    if local.crypto.is_empty() && local.dtls.is_none() {
        return if is_secure(remote) { Err(Refusal::NoAudio) } else { Ok(Agreed::Plain) };
    }
    let by_sdes = || {
        crypto(remote).find_map(|theirs| {
            let ours = local.crypto.iter().find(|ours| ours.suite == theirs.suite)?;
            Some(Agreed::Sdes(Crypto { tag: theirs.tag, ..ours.clone() }, protection(ours, theirs)))
        })
    };
    let by_dtls = || {
        // A side that offers without `a=setup` begins (RFC 4145 4).
        let theirs = Dtls::of_stream(session, remote, Setup::Active)?;
        let (answer, handshake) = local.dtls.as_ref()?.answer(theirs)?;
        Some(Agreed::Dtls(answer, handshake))
    };
    let taken = match local.key_origin {
        _ if is_keyed_by_dtls(remote) => by_dtls(),
        KeyOrigin::Sdes => by_sdes().or_else(by_dtls),
        KeyOrigin::Dtls | KeyOrigin::Any => by_dtls().or_else(by_sdes),
    };
    match taken {
        None if is_secure(remote) || local.crypto_required => Err(Refusal::NoCrypto),
        taken => Ok(taken.unwrap_or(Agreed::Plain)),
    }
}

/// Fills in what the answer `remote` chose of what this side offered: a handshake, or exactly one line of `a=crypto`
/// with its tag (RFC 4568 7.1.3).
pub(super) fn read_choice(
    session: &Session,
    remote: &Media,
    local: &Offer,
    agreed: &mut Negotiated,
) -> Result<(), Refusal> {
    if local.crypto.is_empty() && local.dtls.is_none() {
        return if is_secure(remote) { Err(Refusal::NoAudio) } else { Ok(()) };
    }
    // A side that answers without `a=setup` waits (RFC 4145 4).
    let theirs = local.dtls.as_ref().zip(Dtls::of_stream(session, remote, Setup::Passive));
    if let Some((ours, theirs)) = theirs {
        agreed.dtls = Some(ours.take_answer(theirs).ok_or(Refusal::NoCrypto)?);
        return Ok(());
    }
    let count = remote.values("crypto").count();
    if count == 0 && !is_secure(remote) && !local.crypto_required {
        return Ok(());
    }
    let is_one = count == 1 && !is_keyed_by_dtls(remote);
    let theirs = crypto(remote).next().filter(|_| is_one).ok_or(Refusal::NoCrypto)?;
    let same = |ours: &&Crypto| (ours.tag, ours.suite) == (theirs.tag, theirs.suite);
    let ours = local.crypto.iter().find(same).ok_or(Refusal::NoCrypto)?;
    agreed.crypto = Some(protection(ours, theirs));
    Ok(())
}

fn protection(ours: &Crypto, theirs: Crypto) -> Protection {
    Protection { suite: ours.suite, send: ours.key.clone(), receive: theirs.key }
}

impl Offer {
    /// Returns the profile and the kinds of keys that an offer has: `a=crypto`, and a handshake.
    pub(super) fn protection(&self) -> (&'static str, &[Crypto], Option<&Dtls>) {
        let (crypto, dtls) = (&self.crypto[..], self.dtls.as_ref());
        let both = !crypto.is_empty() && dtls.is_some();
        match self.key_origin {
            // An optional protection loses nothing by a second way to it.
            _ if !self.crypto_required => ("RTP/AVP", crypto, dtls),
            KeyOrigin::Any if both => ("RTP/SAVP", crypto, dtls),
            KeyOrigin::Sdes if both => ("RTP/SAVP", crypto, None),
            _ if dtls.is_some() => ("UDP/TLS/RTP/SAVP", &[], dtls),
            _ => ("RTP/SAVP", crypto, None),
        }
    }

    /// Keeps the agreed protection: the kind of keys that is in use comes first, and a part in a handshake is kept (RFC
    /// 8842 5.3).
    pub fn keep_protection(&mut self, agreed: &Negotiated) {
        if let (Some(dtls), Some(handshake)) = (&mut self.dtls, &agreed.dtls) {
            dtls.setup = handshake.setup();
            self.key_origin = KeyOrigin::Dtls;
        }
    }
}
