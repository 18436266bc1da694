//! The last stretch of a channel, by position.

use crate::frame::Sample;

/// The newest `N` samples of a channel, each at its position on the call's clock. What was never written is silence.
#[derive(Clone, Debug)]
pub struct Ring<const N: usize> {
    pcm: Box<[i16]>,
    /// One past the last sample.
    end: Sample,
}

impl<const N: usize> Ring<N> {
    /// Nothing but silence.
    pub fn new() -> Ring<N> {
        Ring { pcm: vec![0; N].into(), end: 0 }
    }

    /// Writes `pcm` (at most `N`) at `from`. A gap before it becomes silence; what was there before is replaced; after a
    /// jump back nothing later is left.
    pub fn write(&mut self, from: Sample, pcm: &[i16]) {
        let gap = (from - self.end).clamp(0, N as Sample);
        for at in from - gap..from {
            self.pcm[Self::place(at)] = 0;
        }
        let (head, tail) = pcm.split_at(pcm.len().min(N - Self::place(from)));
        self.pcm[Self::place(from)..][..head.len()].copy_from_slice(head);
        self.pcm[..tail.len()].copy_from_slice(tail);
        self.end = from + pcm.len() as Sample;
    }

    /// What lies from `from` on; silence where nothing is held.
    pub fn read(&self, from: Sample, out: &mut [f32]) {
        for (out, at) in out.iter_mut().zip(from..) {
            let held = at < self.end && at >= self.end - N as Sample;
            *out = if held { f32::from(self.pcm[Self::place(at)]) } else { 0.0 };
        }
    }

    fn place(at: Sample) -> usize {
        at.rem_euclid(N as Sample) as usize
    }
}
