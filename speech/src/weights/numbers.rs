//! Kinds of numbers in files of tensors.

/// Number format of a tensor.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    F32,
    F16,
    Bf16,
    I8,
    I16,
    I32,
}

impl Kind {
    /// Returns the length of one number, in bytes.
    pub(super) fn bytes(self) -> u64 {
        match self {
            Kind::F32 | Kind::I32 => 4,
            Kind::F16 | Kind::Bf16 | Kind::I16 => 2,
            Kind::I8 => 1,
        }
    }

    /// Reads the numbers from little-endian bytes.
    pub(super) fn numbers(self, bytes: &[u8]) -> Vec<f32> {
        let pairs = || bytes.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
        let fours = || bytes.chunks_exact(4).map(|four| u32::from_le_bytes([four[0], four[1], four[2], four[3]]));
        match self {
            Kind::F32 => fours().map(f32::from_bits).collect(),
            Kind::F16 => pairs().map(from_half).collect(),
            Kind::Bf16 => pairs().map(|bits| f32::from_bits(u32::from(bits) << 16)).collect(),
            Kind::I8 => bytes.iter().map(|&byte| f32::from(byte as i8)).collect(),
            Kind::I16 => pairs().map(|bits| f32::from(bits as i16)).collect(),
            Kind::I32 => fours().map(|bits| bits as i32 as f32).collect(),
        }
    }
}

/// Converts a number of half precision (IEEE 754-2008 binary16).
fn from_half(bits: u16) -> f32 {
    let (sign, exponent, fraction) = (u32::from(bits >> 15) << 31, u32::from(bits >> 10) & 31, u32::from(bits) & 1023);
    match exponent {
        0 => {
            let small = fraction as f32 * 2f32.powi(-24);
            if sign == 0 { small } else { -small }
        }
        31 => f32::from_bits(sign | 0x7f80_0000 | fraction << 13),
        _ => f32::from_bits(sign | (exponent + 112) << 23 | fraction << 13),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_every_kind_are_read() {
        let check = |kind: Kind, bytes: &[u8], expect: &[f32]| assert_eq!(kind.numbers(bytes), expect, "{kind:?}");
        check(Kind::F32, &1.5f32.to_le_bytes(), &[1.5]);
        check(Kind::F16, &[0x00, 0x3c, 0x00, 0xc0, 0x01, 0x00, 0xff, 0x7b], &[1.0, -2.0, 5.960_464_5e-8, 65504.0]);
        check(Kind::F16, &[0x00, 0x7c], &[f32::INFINITY]);
        check(Kind::Bf16, &[0x80, 0x3f, 0x20, 0xc1], &[1.0, -10.0]);
        check(Kind::I8, &[0x7f, 0x80], &[127.0, -128.0]);
        check(Kind::I16, &[0xff, 0xff], &[-1.0]);
        check(Kind::I32, &[0x02, 0, 0, 0], &[2.0]);
    }
}
