//! English, Spanish, Portuguese, Turkish, Russian, French and German.

use super::{APART, Table};
use crate::numerals::Manner;

pub(super) static EN: Table = Table {
    language: "en",
    manner: APART,
    words: &[
        "0 zero nought oh; 1 one; 2 two; 3 three; 4 four; 5 five; 6 six; 7 seven; 8 eight; 9 nine; 10 ten; 11
         eleven; 12 twelve; 13 thirteen; 14 fourteen; 15 fifteen; 16 sixteen; 17 seventeen; 18 eighteen; 19
         nineteen; 20 twenty; 30 thirty; 40 forty fourty; 50 fifty; 60 sixty; 70 seventy; 80 eighty; 90 ninety;
         x100 hundred; x1000 thousand; x1000000 million; x1000000000 billion; & and; r2 double; r3 triple",
        "#1 first; #2 second; #3 third; #4 fourth; #5 fifth; #6 sixth; #7 seventh; #8 eighth; #9 ninth; #10 tenth;
         #11 eleventh; #12 twelfth; #13 thirteenth; #14 fourteenth; #15 fifteenth; #16 sixteenth; #17 seventeenth;
         #18 eighteenth; #19 nineteenth; #20 twentieth; #30 thirtieth",
    ],
};

pub(super) static ES: Table = Table {
    language: "es",
    manner: APART,
    words: &[
        "0 cero; 1 uno; ~1 un una; 2 dos; 3 tres; 4 cuatro; 5 cinco; 6 seis; 7 siete; 8 ocho; 9 nueve; 10/10 diez;
         11 once; 12 doce; 13 trece; 14 catorce; 15 quince; 16 dieciséis; 17 diecisiete; 18 dieciocho; 19
         diecinueve; 20 veinte; 21 veintiuno veintiún veintiuna; 22 veintidós; 23 veintitrés; 24 veinticuatro; 25
         veinticinco; 26 veintiséis; 27 veintisiete; 28 veintiocho; 29 veintinueve; 30 treinta; 40 cuarenta; 50
         cincuenta; 60 sesenta; 70 setenta; 80 ochenta; 90 noventa; 100 cien ciento; 200 doscientos doscientas;
         300 trescientos trescientas; 400 cuatrocientos cuatrocientas; 500 quinientos quinientas; 600 seiscientos
         seiscientas; 700 setecientos setecientas; 800 ochocientos ochocientas; 900 novecientos novecientas; x1000
         mil; x1000000 millón millones; & y; r2 doble; r3 triple",
        "#1 primero primer primera; #2 segundo; #3 tercero tercer; #4 cuarto; #5 quinto; #6 sexto; #7 séptimo; #8
         octavo; #9 noveno; #10 décimo",
    ],
};

pub(super) static PT: Table = Table {
    language: "pt",
    manner: APART,
    words: &[
        "0 zero; 1 um; ~1 uma; 2 dois duas; 3 três; 4 quatro; 5 cinco; 6 seis; ~6 meia; 7 sete; 8 oito; 9 nove; 10
         dez; 11 onze; 12 doze; 13 treze; 14 catorze quatorze; 15 quinze; 16 dezesseis dezasseis; 17 dezessete
         dezassete; 18 dezoito; 19 dezenove dezanove; 20 vinte; 30 trinta; 40 quarenta; 50 cinquenta; 60 sessenta;
         70 setenta; 80 oitenta; 90 noventa; 100 cem cento; 200 duzentos duzentas; 300 trezentos trezentas; 400
         quatrocentos quatrocentas; 500 quinhentos quinhentas; 600 seiscentos seiscentas; 700 setecentos
         setecentas; 800 oitocentos oitocentas; 900 novecentos novecentas; x1000 mil; x1000000 milhão milhões; &
         e; r2 duplo dobro",
        "#1 primeiro primeira; #2 segundo; #3 terceiro; #4 quarto; #5 quinto; #6 sexto; #7 sétimo; #8 oitavo; #9
         nono; #10 décimo",
    ],
};

pub(super) static TR: Table = Table {
    language: "tr",
    manner: Manner { is_glued: true, endings: &["den", "dan", "ten", "tan", "de", "da", "te", "ta"], ..APART },
    words: &[
        "0 sıfır; ~1 bir binbir; 2 iki; 3 üç; 4 dört; 5 beş; 6 altı; 7 yedi; 8 sekiz; 9 dokuz; 10/10 on; 20 yirmi;
         30 otuz; 40 kırk; 50 elli; 60 altmış; 70 yetmiş; 80 seksen; 90 doksan; x100 yüz; x1000 bin; x1000000
         milyon; x1000000000 milyar; r2 çift",
        "#1 birinci birinde; #2 ikinci ikisi ikisinde; #3 üçüncü üçü üçünde; #4 dördüncü dördü dördünde; #5
         beşinci beşi beşinde; #6 altıncı altısı altısında; #7 yedinci yedisi yedisinde; #8 sekizinci sekizi
         sekizinde; #9 dokuzuncu dokuzu dokuzunda; #10 onuncu onunda; #20 yirminci; #30 otuzuncu",
    ],
};

pub(super) static RU: Table = Table {
    language: "ru",
    manner: APART,
    words: &[
        "0 ноль нуль ноля нуля; 1 один одна одно; 2 два две двух; 3 три трёх; 4 четыре четырёх; 5 пять пяти; 6
         шесть шести; 7 семь семи; 8 восемь восьми; 9 девять девяти; 10 десять десяти; 11 одиннадцать одиннадцати;
         12 двенадцать двенадцати; 13 тринадцать тринадцати; 14 четырнадцать четырнадцати; 15 пятнадцать
         пятнадцати; 16 шестнадцать шестнадцати; 17 семнадцать семнадцати; 18 восемнадцать восемнадцати; 19
         девятнадцать девятнадцати; 20 двадцать двадцати; 30 тридцать тридцати; 40 сорок сорока; 50 пятьдесят
         пятидесяти; 60 шестьдесят шестидесяти; 70 семьдесят семидесяти; 80 восемьдесят восьмидесяти; 90
         девяносто; 100 сто ста; 200 двести; 300 триста; 400 четыреста; 500 пятьсот; 600 шестьсот; 700 семьсот;
         800 восемьсот; 900 девятьсот; x1000 тысяча тысячи тысяч тысячу; x1000000 миллион миллиона миллионов;
         x1000000000 миллиард миллиарда миллиардов; r2 дважды; r3 трижды",
        "#1 первое первого первый первом; #2 второе второго второй втором; #3 третье третьего третий третьем; #4
         четвёртое четвёртого четвёртый четвёртом; #5 пятое пятого пятый пятом; #6 шестое шестого шестой шестом;
         #7 седьмое седьмого седьмой седьмом; #8 восьмое восьмого восьмой восьмом; #9 девятое девятого девятый
         девятом; #10 десятое десятого десятый десятом; #11 одиннадцатое одиннадцатого; #12 двенадцатое
         двенадцатого; #13 тринадцатое тринадцатого; #14 четырнадцатое четырнадцатого; #15 пятнадцатое
         пятнадцатого; #16 шестнадцатое шестнадцатого; #17 семнадцатое семнадцатого; #18 восемнадцатое
         восемнадцатого; #19 девятнадцатое девятнадцатого; #20 двадцатое двадцатого; #30 тридцатое тридцатого; #40
         сорокового; #50 пятидесятого; #60 шестидесятого; #70 семидесятого; #80 восьмидесятого; #90 девяностого;
         #2000 двухтысячного",
    ],
};

pub(super) static FR: Table = Table {
    language: "fr",
    manner: Manner { is_vigesimal: true, ..APART },
    words: &[
        "0 zéro; ~1 un une; 2 deux; 3 trois; 4 quatre; 5 cinq; 6 six; 7 sept; 8 huit; 9 neuf; 10/10 dix; 11 onze;
         12 douze; 13 treize; 14 quatorze; 15 quinze; 16 seize; 20 vingt vingts; 30 trente; 40 quarante; 50
         cinquante; 60/20 soixante; 70 septante; 80 huitante octante; 90 nonante; x100 cent cents; x1000 mille;
         x1000000 million millions; x1000000000 milliard milliards; & et; r2 double; r3 triple",
        "#1 premier première; #2 deuxième; #3 troisième; #4 quatrième; #5 cinquième; #6 sixième; #7 septième; #8
         huitième; #9 neuvième; #10 dixième",
    ],
};

pub(super) static DE: Table = Table {
    language: "de",
    manner: Manner {
        is_glued: true,
        units_first: true,
        endings: &["mal"],
        ordinals: &["sten", "ster", "stes", "ste", "ten", "ter", "tes", "te"],
        ..APART
    },
    words: &[
        "0 null; 1 eins; ~1 ein eine einen einem einer; 2 zwei zwo; 3 drei; 4 vier; 5 fünf fuenf; 6 sechs; 7
         sieben; 8 acht; 9 neun; 10 zehn; 11 elf; 12 zwölf zwoelf; 13 dreizehn; 14 vierzehn; 15 fünfzehn
         fuenfzehn; 16 sechzehn; 17 siebzehn; 18 achtzehn; 19 neunzehn; 20 zwanzig; 30 dreißig; 40 vierzig; 50
         fünfzig fuenfzig; 60 sechzig; 70 siebzig; 80 achtzig; 90 neunzig; x100 hundert; x1000 tausend; x1000000
         million millionen; x1000000000 milliarde milliarden; & und; r2 doppel",
        "#1 erste ersten erster erstes; #3 dritte dritten dritter drittes; #7 siebte siebten siebter siebtes; #8
         achte achten achter achtes",
    ],
};
