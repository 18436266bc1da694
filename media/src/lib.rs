//! Sans-IO call media: frames, codecs, RTP, mixing, DTMF, voice activity, recording and the [`call::Call`] state
//! machine.
//!
//! Nothing here reads a clock, opens a socket, spawns a thread or draws ambient randomness: time, packets and seeds are
//! passed in, packets, frames, events and effects are handed out. A whole conversation can so be replayed in virtual
//! time.

pub mod time;

pub mod frame;

pub mod seed;

pub mod biquad;

pub mod codec;

mod dot;
pub mod resample;

pub mod level;

pub mod fft;

pub mod formant;

pub mod tempo;

pub mod rtp;

pub mod leg;

pub mod mixer;

pub mod noise;

pub mod numerals;

pub mod vocal_tic;

pub mod impair;

pub mod netem;

pub mod connection;

pub mod rendition;

pub mod detected_language;
pub mod dtmf;

pub mod line_tones;

pub mod vad;

pub mod echo;

pub mod clip;
pub mod pcm;

pub mod recording;

pub mod sentence;

pub mod measure;

pub mod call;

pub mod packet_rings;
pub mod rings;

pub mod testing;
