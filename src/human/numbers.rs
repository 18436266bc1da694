//! Words that are numbers, which are not broken up. Languages without a list here have digits only.

/// Number words and the words that join them, by language.
static WORDS: [(&str, &str, &str); 5] = [
    (
        "en",
        "zero oh one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen \
         eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million double triple half \
         first second third fourth fifth sixth seventh eighth ninth tenth dash point",
        "and",
    ),
    (
        "es",
        "cero uno una dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince veinte treinta cuarenta \
         cincuenta sesenta setenta ochenta noventa cien ciento mil coma",
        "y",
    ),
    (
        "de",
        "null eins ein zwei zwo drei vier fünf sechs sieben acht neun zehn elf zwölf zwanzig dreißig vierzig fünfzig sechzig \
         siebzig achtzig neunzig hundert tausend komma",
        "und",
    ),
    (
        "fr",
        "zéro un deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize vingt trente quarante \
         cinquante soixante cent mille virgule",
        "et",
    ),
    (
        "pt",
        "zero um uma dois duas três quatro cinco seis meia sete oito nove dez onze doze treze quinze vinte trinta quarenta \
         cinquenta sessenta setenta oitenta noventa cem cento mil vírgula",
        "e",
    ),
];

/// Recognizes the numbers of one language.
#[derive(Copy, Clone, Debug)]
pub(super) struct Numbers {
    words: &'static str,
    joins: &'static str,
}

impl Numbers {
    /// Returns the numbers of `language`; for an unknown one only digits count.
    pub(super) fn of(language: &str) -> Numbers {
        let known = WORDS.iter().find(|(code, ..)| *code == language);
        known.map_or(Numbers { words: "", joins: "" }, |&(_, words, joins)| Numbers { words, joins })
    }

    /// True if `word` and the words that follow belong to one number, so that nothing may stand between them.
    pub(super) fn joined(self, word: &str, rest: &[&str]) -> bool {
        match rest {
            [next, after, ..] if self.joins(next) => self.holds(word) && self.holds(after),
            [next, ..] if self.joins(word) => self.holds(next),
            [next, ..] => self.holds(word) && self.holds(next),
            [] => false,
        }
    }

    /// True if the word joins the words of a number, as `and` does.
    pub(super) fn joins(self, word: &str) -> bool {
        bare(word) == self.joins && !self.joins.is_empty()
    }

    /// True if the word is a number or a part of one.
    pub(super) fn holds(self, word: &str) -> bool {
        let bare = bare(word);
        bare.contains(char::is_numeric)
            || bare.split('-').any(|part| !part.is_empty() && self.words.split(' ').any(|known| known == part))
    }
}

fn bare(word: &str) -> String {
    word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase()
}
