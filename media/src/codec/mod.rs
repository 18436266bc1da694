//! placeholder

/// A negotiable codec.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Codec {
    /// ITU-T G.711 mu-law.
    Pcmu,
    /// ITU-T G.711 A-law.
    Pcma,
    /// ITU-T G.722 at 64 kbit/s; RTP clock 8000.
    G722,
}
