//! From a [`Book`] back to text. Macros and defined symbols are expanded.

use super::model::{
    Bar, BarStyle, Book, Element, Field, Fraction, Item, Meter, Note, Properties, Tempo, Tune,
    Tuplet,
};

/// Returns the text of a book: parsed again, it is the same music.
#[must_use]
pub fn print(book: &Book) -> String {
    let mut out = String::new();
    for field in &book.header {
        print_field_line(&mut out, field);
    }
    if !book.header.is_empty() {
        out.push('\n');
    }
    for (tune_idx, tune) in book.tunes.iter().enumerate() {
        if tune_idx > 0 {
            out.push('\n');
        }
        print_tune(&mut out, tune);
    }
    out
}

fn print_tune(out: &mut String, tune: &Tune) {
    if !matches!(tune.header.first(), Some(Field::Reference(_))) {
        out.push_str("X:1\n");
    }
    for field in &tune.header {
        print_field_line(out, field);
    }
    if !tune.header.iter().any(|field| matches!(field, Field::Key(_))) {
        out.push_str("K:C\n");
    }
    let mut before = None;
    for Item { element, .. } in &tune.body {
        if runs_together(before, element) || (is_line_end(element) && line_is_blank(out)) {
            out.push('`');
        }
        print_element(out, element);
        before = Some(element);
    }
    if !out.ends_with('\n') {
        out.push('\n');
    }
}

/// Returns whether two adjacent elements would read as one; a backtick means nothing and separates
/// them.
fn runs_together(before: Option<&Element>, element: &Element) -> bool {
    matches!(
        (before, element),
        (Some(Element::Bar(_)), Element::Bar(_))
            | (Some(Element::Broken { .. }), Element::Broken { .. })
            | (Some(Element::Overlay), Element::SlurClose)
            | (Some(Element::SlurOpen), Element::Overlay)
    )
}

fn is_line_end(element: &Element) -> bool {
    matches!(element, Element::LineEnd { .. })
}

/// An empty line would end the tune.
fn line_is_blank(out: &str) -> bool {
    out.rsplit('\n').next().is_none_or(|line| line.trim().is_empty())
}

fn print_element(out: &mut String, element: &Element) {
    match element {
        Element::Note(note) => print_note(out, note),
        Element::Chord(chord) => {
            out.push('[');
            for note in &chord.notes {
                for mark in &note.marks {
                    out.push_str(&format!("!{mark}!"));
                }
                print_note(out, note);
            }
            out.push(']');
            print_length(out, chord.length);
            out.push_str(if chord.tie { "-" } else { "" });
        }
        Element::Rest { length, visible } => {
            out.push(if *visible { 'z' } else { 'x' });
            print_length(out, *length);
        }
        // Always with its number: `Z:` would be a field.
        Element::BarRest { bars, visible } => {
            out.push_str(&format!("{}{bars}", if *visible { 'Z' } else { 'X' }));
        }
        Element::Spacer => out.push('y'),
        Element::Grace { slash, notes } => {
            out.push_str(if *slash { "{/" } else { "{" });
            for note in notes {
                print_note(out, note);
            }
            out.push('}');
        }
        Element::Bar(bar) => print_bar(out, *bar),
        Element::Ending(numbers) => {
            let numbers: Vec<_> = numbers.iter().map(ToString::to_string).collect();
            out.push_str(&format!("[{}", numbers.join(",")));
        }
        Element::Tuplet(tuplet) => print_tuplet(out, *tuplet),
        Element::Broken { n, long_first } => {
            out.push_str(&(if *long_first { ">" } else { "<" }).repeat(*n as usize));
        }
        Element::SlurOpen => out.push('('),
        Element::SlurClose => out.push(')'),
        Element::Decoration(name) => out.push_str(&format!("!{name}!")),
        Element::Quoted(text) => out.push_str(&format!("\"{text}\"")),
        Element::Overlay => out.push('&'),
        Element::Space => out.push(' '),
        Element::LineEnd { continued } => out.push_str(if *continued { "\\\n" } else { "\n" }),
        Element::Field { field, inline: true } => {
            let (letter, text) = field_text(field);
            out.push_str(&format!("[{letter}:{text}]"));
        }
        Element::Field { field, inline: false } => print_field_line(out, field),
    }
}

fn print_note(out: &mut String, note: &Note) {
    let pitch = note.pitch;
    out.push_str(pitch.accidental.map_or("", |accidental| accidental.abc()));
    let letter = pitch.letter.upper();
    let (letter, mark, n_marks) = if pitch.octave > 0 {
        (letter.to_ascii_lowercase(), "'", pitch.octave - 1)
    } else {
        (letter, ",", -pitch.octave)
    };
    out.push(letter);
    out.push_str(&mark.repeat(n_marks as usize));
    print_length(out, note.length);
    out.push_str(if note.tie { "-" } else { "" });
}

fn print_length(out: &mut String, length: Fraction) {
    if *length.numer() != 1 {
        out.push_str(&length.numer().to_string());
    }
    if *length.denom() != 1 {
        out.push_str(&format!("/{}", length.denom()));
    }
}

fn print_bar(out: &mut String, bar: Bar) {
    let strokes = match bar.style {
        BarStyle::Single => "|",
        // A bracket after a colon would not read as a bar.
        BarStyle::ThickThin | BarStyle::Invisible if bar.repeats_before > 0 => "||",
        BarStyle::Double => "||",
        BarStyle::ThinThick => "|]",
        BarStyle::ThickThin => "[|",
        BarStyle::Dotted if bar.repeats_before > 0 => "|",
        BarStyle::Dotted => ".|",
        BarStyle::Invisible => "[|]",
    };
    let colons = |n: u32| ":".repeat(n as usize);
    out.push_str(&format!("{}{strokes}{}", colons(bar.repeats_before), colons(bar.repeats_after)));
}

fn print_tuplet(out: &mut String, tuplet: Tuplet) {
    out.push_str(&format!("({}", tuplet.p));
    if tuplet.q.is_none() && tuplet.r.is_none() {
        return;
    }
    let number = |n: Option<u32>| n.map(|n| n.to_string()).unwrap_or_default();
    out.push_str(&format!(":{}", number(tuplet.q)));
    if tuplet.r.is_some() {
        out.push_str(&format!(":{}", number(tuplet.r)));
    }
}

fn print_field_line(out: &mut String, field: &Field) {
    match field {
        Field::Midi { text, .. } => out.push_str(&format!("%%MIDI {text}\n")),
        Field::Directive(text) => out.push_str(&format!("%%{text}\n")),
        Field::Reference(_)
        | Field::Meter(_)
        | Field::UnitLength(_)
        | Field::Tempo(_)
        | Field::Key(_)
        | Field::Voice(_)
        | Field::Parts(_)
        | Field::Lyrics(_)
        | Field::Symbols(_)
        | Field::Text { .. } => {
            let (letter, text) = field_text(field);
            out.push_str(&format!("{letter}:{text}\n"));
        }
    }
}

fn field_text(field: &Field) -> (char, String) {
    match field {
        Field::Reference(number) => ('X', number.to_string()),
        Field::Meter(meter) => ('M', meter_text(meter)),
        Field::UnitLength(length) => ('L', fraction_text(*length)),
        Field::Tempo(tempo) => ('Q', tempo_text(tempo)),
        Field::Key(field) => {
            let key = field.key.as_ref().map(|key| key.abc()).unwrap_or_default();
            ('K', format!("{key}{}", properties_text(&field.properties)).trim().to_owned())
        }
        Field::Voice(field) => ('V', format!("{}{}", field.id, properties_text(&field.properties))),
        Field::Parts(text) => ('P', text.clone()),
        Field::Lyrics(text) => ('w', text.clone()),
        Field::Symbols(text) => ('s', text.clone()),
        Field::Midi { text, .. } => ('I', format!("MIDI {text}")),
        Field::Directive(text) => ('I', text.clone()),
        Field::Text { letter, text } => (*letter, text.clone()),
    }
}

/// Returns its notation after `M:`.
pub(super) fn meter_text(meter: &Meter) -> String {
    match meter {
        Meter::Free => "none".to_owned(),
        Meter::Common => "C".to_owned(),
        Meter::Cut => "C|".to_owned(),
        Meter::Beats { above, below } => {
            let numbers: Vec<_> = above.iter().map(ToString::to_string).collect();
            let numbers = numbers.join("+");
            if above.len() > 1 {
                format!("({numbers})/{below}")
            } else {
                format!("{numbers}/{below}")
            }
        }
    }
}

fn tempo_text(tempo: &Tempo) -> String {
    let mut words: Vec<String> = Vec::new();
    words.extend(tempo.text.as_ref().map(|text| format!("\"{text}\"")));
    words.extend(tempo.beats.iter().map(|beat| fraction_text(*beat)));
    let mut text = words.join(" ");
    if let Some(per_minute) = tempo.per_minute {
        let sign = if tempo.beats.is_empty() { " " } else { "=" };
        text.push_str(&format!("{sign}{per_minute}"));
    }
    text.trim().to_owned()
}

fn fraction_text(fraction: Fraction) -> String {
    format!("{}/{}", fraction.numer(), fraction.denom())
}

fn properties_text(properties: &Properties) -> String {
    let text = |(name, value): &(String, String)| {
        let bare = !value.is_empty() && !value.contains(char::is_whitespace);
        if bare { format!(" {name}={value}") } else { format!(" {name}=\"{value}\"") }
    };
    properties.0.iter().map(text).collect()
}
