//! Japanese, Chinese, Cantonese, Vietnamese and Korean.

use super::{APART, Table};
use crate::numerals::Manner;

/// Numerals that Japanese and Chinese write alike.
const HAN: &str = "1 一 壱 壹; 2 二 弐 貳 贰; 3 三 参 叁; 4 四 肆; 5 五 伍; 6 六 陸 陆; 7 七 柒; 8 八 捌; 9 九 玖; x10 十 拾; x100 百 佰; x1000 千 仟;
         x10000 万 萬; x100000000 亿 億";

/// Readings of digits that are shorter or more often other words, as `shi`, are left out.
pub(super) static JA: Table = Table {
    language: "ja",
    manner: Manner { is_unspaced: true, bare: 1000, ..APART },
    words: &[
        HAN,
        "z 〇 零; 0 ぜろ れい まる; 1 いち; 2 に にい; 3 さん; 4 よん; 5 ご ごう; 6 ろく; 7 なな しち; 8 はち; 9 きゅう きゅー; x10 じゅう; x100 ひゃく;
         x1000 せん",
    ],
};

pub(super) static ZH: Table = Table {
    language: "zh",
    manner: Manner { is_unspaced: true, bare: 10, ..APART },
    words: &[HAN, "z 〇 零; 1 幺; 2 两 兩"],
};

pub(super) static YUE: Table = Table {
    language: "yue",
    manner: Manner { is_unspaced: true, bare: 10, ..APART },
    words: &[HAN, "z 〇 零; 2 两 兩; 20/10 廿; 30/10 卅"],
};

/// `không` (no), `năm` (year) and `ba` (father) are more often no numbers.
pub(super) static VI: Table = Table {
    language: "vi",
    manner: APART,
    words: &["~0 không; 1 một mốt; 2 hai; ~3 ba; 4 bốn; ~4 tư; ~5 năm; 5 lăm nhăm; 6 sáu; 7 bảy bẩy; 8 tám; 9 chín;
         10/10 mười; x10 mươi; x100 trăm; x1000 nghìn ngàn; x1000000 triệu; x1000000000 tỷ tỉ; & linh lẻ"],
};

/// Sino-Korean numbers, which telephone numbers, dates and amounts have, and the native ones. `만` after a native number
/// is `only`, and `이만` is mostly `that is all`.
pub(super) static KO: Table = Table {
    language: "ko",
    manner: Manner {
        is_glued: true,
        endings: &[
            "입니다", "이에요", "예요", "이고요", "이고", "이요", "요", "번", "번이에요", "번입니다", "번으로", "번은", "번에", "번을", "번이요", "년", "년에", "년도",
            "년생", "월", "월에", "일", "일에", "일은", "일입니다", "일이에요", "일생", "호", "층", "원", "원입니다", "은", "는", "을", "으로", "로",
            "에", "에서", "하고", "명", "개", "시", "분",
        ],
        ..APART
    },
    words: &[
        "0 영 공 제로; 1 일 하나 하나만 한; 2 이 둘 둘만 두; ~2 이만; 3 삼 셋 셋만; 4 사 넷 넷만; 5 오 다섯; 6 육 륙 여섯; 7 칠 일곱; 8 팔 여덟; 9 구 아홉;
         10/10 열; 20 스물 스무; 30 서른; 40 마흔; 50 쉰; 60 예순; 70 일흔; 80 여든; 90 아흔; x10 십; x100 백; x1000 천; x10000 만;
         x100000000 억",
    ],
};
