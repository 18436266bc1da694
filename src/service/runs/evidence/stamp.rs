//! Time stamps over the manifests of evidence (RFC 3161): the query for an authority, and what an answer proves. An
//! answer proves a time only to those who know the authority's certificate from elsewhere.

use cms::cert::CertificateChoices;
use cms::cert::x509::Certificate;
use cms::cert::x509::attr::Attributes;
use cms::content_info::ContentInfo;
use cms::signed_data::{SignedData, SignerIdentifier, SignerInfo};
use der::asn1::{BitString, Int, ObjectIdentifier, OctetString};
use der::{Any, Decode, Encode, Sequence, Tag, Tagged};
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use ring::digest::{self, SHA256, SHA384, SHA512};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, TrustAnchor, UnixTime};
use webpki::{EndEntityCert, KeyUsage, anchor_from_trusted_cert};

/// Media type of a query (RFC 3161 3.4).
pub(super) const QUERY_TYPE: &str = "application/timestamp-query";
/// Longest answer that is read, in bytes: a token with a chain of certificates has a few thousand.
pub(super) const ANSWER_BYTES: usize = 64 * 1024;

const ID_SHA_256: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.16.840.1.101.3.4.2.1");
const ID_SHA_384: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.16.840.1.101.3.4.2.2");
const ID_SHA_512: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.16.840.1.101.3.4.2.3");
/// Content type of a token's content (RFC 3161 2.4.2).
const ID_TST_INFO: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.9.16.1.4");
/// Attribute with the content type (RFC 5652 11.1).
const ID_CONTENT_TYPE: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.9.3");
/// Attribute with the digest of the content (RFC 5652 11.2).
const ID_MESSAGE_DIGEST: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.9.4");
/// Extended key usage of authorities, 1.3.6.1.5.5.7.3.8 (RFC 3161 2.3), as the bytes of its encoding.
const TIME_STAMPING: KeyUsage = KeyUsage::required(&[0x2b, 6, 1, 5, 5, 7, 3, 8]);
/// Length of a nonce in bytes. The first one is not 0 and has no sign, so that it is encoded as it is.
const NONCE_BYTES: usize = 8;

/// Algorithm with its parameters.
#[derive(Clone, Debug, Eq, PartialEq, Sequence)]
struct Algorithm {
    oid: ObjectIdentifier,
    #[asn1(optional = "true")]
    parameters: Option<Any>,
}

/// `MessageImprint` (RFC 3161 2.4.1).
#[derive(Clone, Debug, Eq, PartialEq, Sequence)]
struct Imprint {
    algorithm: Algorithm,
    hashed: OctetString,
}

/// `TimeStampReq` (RFC 3161 2.4.1), as far as it is used.
#[derive(Clone, Debug, Eq, PartialEq, Sequence)]
struct Query {
    version: u8,
    imprint: Imprint,
    nonce: Int,
    certificates: bool,
}

/// `PKIStatusInfo` (RFC 3161 2.4.2).
#[derive(Clone, Debug, Eq, PartialEq, Sequence)]
struct Status {
    status: u8,
    #[asn1(optional = "true")]
    texts: Option<Vec<String>>,
    #[asn1(optional = "true")]
    failure: Option<BitString>,
}

/// `TimeStampResp` (RFC 3161 2.4.2).
#[derive(Clone, Debug, Eq, PartialEq, Sequence)]
struct Answer {
    status: Status,
    #[asn1(optional = "true")]
    token: Option<ContentInfo>,
}

/// `TSTInfo` (RFC 3161 2.4.2). The time may have a fraction of a second, so it is read as it stands.
#[derive(Clone, Debug, Eq, PartialEq, Sequence)]
struct Content {
    version: u8,
    policy: ObjectIdentifier,
    imprint: Imprint,
    serial: Int,
    time: Any,
    #[asn1(optional = "true")]
    accuracy: Option<Accuracy>,
    #[asn1(default = "Default::default")]
    ordering: bool,
    #[asn1(optional = "true")]
    nonce: Option<Int>,
    #[asn1(context_specific = "0", tag_mode = "EXPLICIT", optional = "true")]
    authority: Option<Any>,
    #[asn1(context_specific = "1", tag_mode = "IMPLICIT", optional = "true")]
    extensions: Option<Vec<Any>>,
}

/// `Accuracy` (RFC 3161 2.4.2).
#[derive(Clone, Debug, Eq, PartialEq, Sequence)]
struct Accuracy {
    #[asn1(optional = "true")]
    seconds: Option<u32>,
    #[asn1(context_specific = "0", tag_mode = "IMPLICIT", optional = "true")]
    millis: Option<u16>,
    #[asn1(context_specific = "1", tag_mode = "IMPLICIT", optional = "true")]
    micros: Option<u16>,
}

/// Contents of a time stamp whose signature fits the certificate in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    /// SHA-256 that is stamped.
    pub sha256: Vec<u8>,
    /// Time of the stamp, milliseconds since 1970.
    pub at_ms: i64,
    /// Name of the authority, as its certificate has it.
    pub authority: String,
    /// Nonce of the query; empty: there was none.
    nonce: Vec<u8>,
    /// Certificate of the authority, and others that the stamp carries, DER.
    certificate: Vec<u8>,
    others: Vec<Vec<u8>>,
}

/// Returns a query for a stamp over a SHA-256, DER, and its nonce.
pub(super) fn query(sha256: &[u8]) -> Result<(Vec<u8>, Vec<u8>), der::Error> {
    let mut nonce = [0; NONCE_BYTES];
    ringer_base::clock::random_bytes(&mut nonce);
    nonce[0] = nonce[0] & 0x3f | 0x40;
    let imprint = Imprint {
        algorithm: Algorithm { oid: ID_SHA_256, parameters: Some(Any::null()) },
        hashed: OctetString::new(sha256)?,
    };
    let query = Query { version: 1, imprint, nonce: Int::new(&nonce)?, certificates: true };
    Ok((query.to_der()?, nonce.to_vec()))
}

/// Returns an authority's answer to a query, once it is checked that it answers that query.
///
/// # Errors
/// Says why the answer is no stamp over this hash.
pub(super) fn read_answer(answer: &[u8], sha256: &[u8], nonce: &[u8]) -> Result<Stamp, String> {
    let stamp = Stamp::read(answer)?;
    if stamp.sha256 != sha256 {
        return Err("the stamp is over something else".to_owned());
    }
    if stamp.nonce != nonce {
        return Err("the stamp answers another query".to_owned());
    }
    Ok(stamp)
}

impl Stamp {
    /// Reads an answer with a stamp, and checks its signature against the certificate that it carries.
    ///
    /// # Errors
    /// Says what it has instead, or that its signature does not fit.
    pub(super) fn read(answer: &[u8]) -> Result<Stamp, String> {
        let unreadable = |error: der::Error| format!("the answer is no time stamp: {error}");
        let answer = Answer::from_der(answer).map_err(unreadable)?;
        let Some(token) = answer.token else {
            let texts = answer.status.texts.unwrap_or_default().join(", ");
            return Err(format!("the authority stamps nothing: status {}, {texts:?}", answer.status.status));
        };
        let signed = token.content.decode_as::<SignedData>().map_err(unreadable)?;
        let content = match &signed.encap_content_info.econtent {
            Some(content) if signed.encap_content_info.econtent_type == ID_TST_INFO => content.value(),
            _ => return Err("the answer holds no time stamp".to_owned()),
        };
        let signer = signed.signer_infos.0.as_slice().first().ok_or("the stamp is not signed")?;
        let certificates = certificates_of(&signed);
        // A key identifier may be that of any certificate: the one whose key fits is meant.
        let mut found = Err("the stamp has no certificate of its authority".to_owned());
        for candidate in certificates.iter().filter(|certificate| is_of(certificate, &signer.sid)) {
            let der = candidate.to_der().map_err(unreadable)?;
            found = check_signature(signer, content, &der).map(|()| (candidate, der));
            if found.is_ok() {
                break;
            }
        }
        let (own, certificate) = found?;
        let content = Content::from_der(content).map_err(unreadable)?;
        if content.imprint.algorithm.oid != ID_SHA_256 {
            return Err("the stamp is not over a SHA-256".to_owned());
        }
        let others = certificates.iter().filter_map(|other| other.to_der().ok());
        Ok(Stamp {
            sha256: content.imprint.hashed.as_bytes().to_vec(),
            at_ms: time_of(&content.time)?,
            authority: own.tbs_certificate.subject.to_string(),
            nonce: content.nonce.map(|nonce| nonce.as_bytes().to_vec()).unwrap_or_default(),
            others: others.filter(|other| *other != certificate).collect(),
            certificate,
        })
    }

    /// Checks that the certificate was valid for time stamps at the time of the stamp, by these authorities.
    ///
    /// # Errors
    /// Says why it is not.
    pub(super) fn check_authority(&self, authorities: &Authorities) -> Result<(), String> {
        let told = |error: webpki::Error| format!("its authority {} is not certified: {error:?}", self.authority);
        let certificate = CertificateDer::from(self.certificate.as_slice());
        let others: Vec<CertificateDer<'_>> = self.others.iter().map(|der| CertificateDer::from(&der[..])).collect();
        let certificate = EndEntityCert::try_from(&certificate).map_err(told)?;
        let at_s = u64::try_from(self.at_ms / 1000).map_err(|_| "the time of the stamp is before 1970".to_owned())?;
        let at = UnixTime::since_unix_epoch(std::time::Duration::from_secs(at_s));
        let algorithms = default_provider().signature_verification_algorithms.all;
        let anchors = &authorities.0;
        certificate.verify_for_usage(algorithms, anchors, &others, at, TIME_STAMPING, None, None).map_err(told)?;
        Ok(())
    }
}

/// Certificates of authorities that a reader knows from elsewhere.
#[derive(Clone, Debug, Default)]
pub struct Authorities(Vec<TrustAnchor<'static>>);

impl Authorities {
    /// Reads certificates in PEM.
    ///
    /// # Errors
    /// Says that there is none, or which one cannot be read.
    pub fn parse(pem: &[u8]) -> Result<Authorities, String> {
        let mut anchors = Vec::new();
        for (at, certificate) in CertificateDer::pem_slice_iter(pem).enumerate() {
            let told = |error: &dyn std::fmt::Debug| format!("certificate {} cannot be read: {error:?}", at + 1);
            let certificate = certificate.map_err(|error| told(&error))?;
            anchors.push(anchor_from_trusted_cert(&certificate).map_err(|error| told(&error))?.to_owned());
        }
        if anchors.is_empty() { Err("there is no certificate in PEM".to_owned()) } else { Ok(Authorities(anchors)) }
    }
}

fn certificates_of(signed: &SignedData) -> Vec<Certificate> {
    let choices = signed.certificates.iter().flat_map(|set| set.0.iter());
    let plain = choices.filter_map(|choice| match choice {
        CertificateChoices::Certificate(certificate) => Some(certificate.clone()),
        CertificateChoices::Other(_) => None,
    });
    plain.collect()
}

fn is_of(certificate: &Certificate, signer: &SignerIdentifier) -> bool {
    let certificate = &certificate.tbs_certificate;
    match signer {
        SignerIdentifier::IssuerAndSerialNumber(named) => {
            named.issuer == certificate.issuer && named.serial_number == certificate.serial_number
        }
        // Another certificate's key does not fit the signature.
        SignerIdentifier::SubjectKeyIdentifier(_) => true,
    }
}

/// Checks the signature over the attributes, and that these name the content (RFC 5652 5.4).
fn check_signature(signer: &SignerInfo, content: &[u8], certificate: &[u8]) -> Result<(), String> {
    let algorithm = match signer.digest_alg.oid {
        ID_SHA_256 => &SHA256,
        ID_SHA_384 => &SHA384,
        ID_SHA_512 => &SHA512,
        other => return Err(format!("the stamp is signed by way of the digest {other}, which is not read")),
    };
    let attributes = signer.signed_attrs.as_ref().ok_or("the stamp has no signed attributes")?;
    let digest = digest::digest(algorithm, content);
    let names_content = value_of(attributes, ID_MESSAGE_DIGEST).is_some_and(|value| value.value() == digest.as_ref());
    let kind = value_of(attributes, ID_CONTENT_TYPE).and_then(|value| value.decode_as::<ObjectIdentifier>().ok());
    if !names_content || kind != Some(ID_TST_INFO) {
        return Err("the signature of the stamp is over something else".to_owned());
    }
    let signed = attributes.to_der().map_err(|error| error.to_string())?;
    let certificate = CertificateDer::from(certificate);
    let certificate = EndEntityCert::try_from(&certificate).map_err(|error| format!("its certificate: {error:?}"))?;
    let fits = default_provider()
        .signature_verification_algorithms
        .all
        .iter()
        .any(|one| certificate.verify_signature(*one, &signed, signer.signature.as_bytes()).is_ok());
    if fits { Ok(()) } else { Err("the signature of the stamp does not fit".to_owned()) }
}

fn value_of(attributes: &Attributes, oid: ObjectIdentifier) -> Option<&Any> {
    attributes.iter().find(|attribute| attribute.oid == oid)?.values.as_slice().first()
}

/// Returns the milliseconds since 1970 of a GeneralizedTime, with or without a fraction of a second.
fn time_of(time: &Any) -> Result<i64, String> {
    let text = std::str::from_utf8(time.value()).unwrap_or_default();
    let bad = || format!("the time of the stamp cannot be read: {text:?}");
    let text_utc = text.strip_suffix('Z').filter(|_| time.tag() == Tag::GeneralizedTime).ok_or_else(bad)?;
    let parsed = DateTime::strptime("%Y%m%d%H%M%S%.f", text_utc).map_err(|_| bad())?;
    Ok(parsed.to_zoned(TimeZone::UTC).map_err(|_| bad())?.timestamp().as_millisecond())
}
