//! Names of Digital Humans that are given none, by language and gender.

use ringer_media::seed::Seed;
use ringer_model::digital_human::{Gender, Language};

/// Female given names, male given names, family names.
type Names = (&'static [&'static str], &'static [&'static str], &'static [&'static str]);

const ENGLISH: Names = (
    &["Emma", "Olivia", "Grace", "Hannah", "Claire", "Megan", "Rachel", "Laura"],
    &["James", "Daniel", "Peter", "Adam", "Thomas", "Eric", "Simon", "Kevin"],
    &["Walker", "Bennett", "Hughes", "Foster", "Carter", "Morgan", "Reed", "Turner"],
);
const SPANISH: Names = (
    &["María", "Lucía", "Carmen", "Elena", "Paula", "Sofía"],
    &["Javier", "Carlos", "Miguel", "Andrés", "Diego", "Luis"],
    &["Álvarez", "Romero", "Navarro", "Torres", "Vega", "Molina"],
);
const PORTUGUESE: Names = (
    &["Ana", "Beatriz", "Inês", "Mariana", "Teresa", "Rita"],
    &["João", "Pedro", "Tiago", "Rui", "Nuno", "Paulo"],
    &["Silva", "Costa", "Almeida", "Ferreira", "Ribeiro", "Sousa"],
);
const JAPANESE: Names = (
    &["Yuki", "Aiko", "Haruka", "Naomi", "Sakura", "Emi"],
    &["Haruto", "Kenji", "Takumi", "Daichi", "Ren", "Hiroshi"],
    &["Tanaka", "Sato", "Suzuki", "Kobayashi", "Yamada", "Ito"],
);
const TURKISH: Names = (
    &["Elif", "Zeynep", "Ayşe", "Defne", "Merve", "Selin"],
    &["Mehmet", "Emre", "Can", "Murat", "Kerem", "Deniz"],
    &["Yılmaz", "Kaya", "Demir", "Şahin", "Aydın", "Arslan"],
);
const HINDI: Names = (
    &["Priya", "Anjali", "Kavita", "Neha", "Pooja", "Meera"],
    &["Arjun", "Rahul", "Vikram", "Amit", "Rohan", "Sanjay"],
    &["Sharma", "Gupta", "Verma", "Mehta", "Joshi", "Singh"],
);
const ARABIC: Names = (
    &["Layla", "Fatima", "Noor", "Amina", "Salma", "Huda"],
    &["Omar", "Yusuf", "Karim", "Hassan", "Tariq", "Sami"],
    &["Haddad", "Mansour", "Nasser", "Khalil", "Saleh", "Farouk"],
);
const RUSSIAN: Names = (
    &["Anna", "Olga", "Irina", "Natalia", "Elena", "Daria"],
    &["Ivan", "Dmitri", "Alexei", "Sergei", "Nikolai", "Pavel"],
    &["Shevchenko", "Melnik", "Koval", "Bondar", "Moroz", "Litvin"],
);
const CHINESE: Names = (
    &["Li", "Mei", "Xiu", "Yan", "Jing", "Fang"],
    &["Wei", "Jun", "Hao", "Ming", "Lei", "Bo"],
    &["Chen", "Wang", "Liu", "Zhang", "Huang", "Zhou"],
);
const MALAYALAM: Names = (
    &["Lakshmi", "Divya", "Anu", "Reshma", "Sreeja", "Maya"],
    &["Anil", "Biju", "Manoj", "Rajesh", "Suresh", "Vinod"],
    &["Nair", "Menon", "Pillai", "Kurup", "Varma", "Panicker"],
);
const FRENCH: Names = (
    &["Camille", "Chloé", "Juliette", "Manon", "Sophie", "Louise"],
    &["Antoine", "Hugo", "Julien", "Louis", "Mathieu", "Nicolas"],
    &["Martin", "Moreau", "Lefèvre", "Girard", "Fournier", "Dubois"],
);
const VIETNAMESE: Names = (
    &["Linh", "Mai", "Hoa", "Thu", "Lan", "Ngoc"],
    &["Minh", "Duc", "Tuan", "Hung", "Nam", "Khanh"],
    &["Nguyen", "Tran", "Pham", "Hoang", "Vu", "Dang"],
);
const GERMAN: Names = (
    &["Anna", "Lena", "Katrin", "Julia", "Sabine", "Marie"],
    &["Jonas", "Lukas", "Stefan", "Felix", "Markus", "Paul"],
    &["Schneider", "Fischer", "Weber", "Becker", "Hoffmann", "Koch"],
);
const KOREAN: Names = (
    &["Jiwoo", "Minseo", "Haeun", "Soyeon", "Yuna", "Eunji"],
    &["Minjun", "Jihoon", "Seojun", "Dongwoo", "Hyunwoo", "Joon"],
    &["Kim", "Lee", "Park", "Choi", "Jung", "Kang"],
);

/// Returns a name, drawn from `seed`. Without a gender, that is drawn too.
pub(crate) fn draw(seed: Seed, language: Language, gender: Option<Gender>) -> String {
    let (female, male, family) = match language {
        Language::En | Language::Ad => ENGLISH,
        Language::Es => SPANISH,
        Language::Pt => PORTUGUESE,
        Language::Ja => JAPANESE,
        Language::Tr => TURKISH,
        Language::Hi => HINDI,
        Language::Ar => ARABIC,
        Language::Ru => RUSSIAN,
        Language::Zh | Language::Yue => CHINESE,
        Language::Ml => MALAYALAM,
        Language::Fr => FRENCH,
        Language::Vi => VIETNAMESE,
        Language::De => GERMAN,
        Language::Ko => KOREAN,
    };
    let mut stream = seed.stream("name");
    let drawn = if stream.unit() < 0.5 { Gender::Female } else { Gender::Male };
    let given = match gender.unwrap_or(drawn) {
        Gender::Female => female,
        Gender::Male => male,
    };
    format!("{} {}", given[stream.index(given.len())], family[stream.index(family.len())])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_repeats_by_seed_and_fits_the_gender() {
        for language in Language::ALL {
            let name = draw(Seed(7), *language, Some(Gender::Female));
            assert_eq!(name, draw(Seed(7), *language, Some(Gender::Female)));
        }
        let names: Vec<String> = (0..50).map(|seed| draw(Seed(seed), Language::De, Some(Gender::Male))).collect();
        assert!(names.iter().all(|name| GERMAN.1.iter().any(|given| name.starts_with(given))));
        assert!(names.iter().any(|name| *name != names[0]));
    }
}
