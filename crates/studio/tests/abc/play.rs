//! Sounds, point by point: each test covers a way in which ABC has been played wrong.

use ringback_studio::abc::{self, Options};
use ringback_studio::smf::{Message, TextKind};

use crate::{book, keys, perform, sounds, tune};

/// Returns the sounds of a tune in quarters.
fn heard(music: &str) -> String {
    sounds(&tune(music))
}

/// REQ: ABC 2.1 "4.4 Broken rhythm".
#[test]
fn broken_rhythm_moves_time_between_two_notes() {
    assert_eq!(heard("C>D E<F"), "0+3/2:60 3/2+1/2:62 2+1/2:64 5/2+3/2:65");
    assert_eq!(heard("C>>D"), "0+7/4:60 7/4+1/4:62");
    assert_eq!(heard("C>D>E>F"), heard("C>D E>F"), "a note is in one pair only");
}

/// REQ: ABC 2.1 "5. Lyrics": a line of lyrics is sung, not played.
#[test]
fn lyrics_are_not_played() {
    assert_eq!(keys(&tune("CD|\nw:a-b\n")), [60, 62]);
    let performance = perform(&tune("CD|\nw:a-b"));
    let sung: Vec<&str> =
        performance.lines[0].lyrics.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!(sung, ["a-", "b"]);
}

/// REQ: ABC 2.1 "3.2 Use of fields within the tune body".
#[test]
fn fields_inside_a_tune_take_effect_and_are_not_played() {
    assert_eq!(keys(&tune("F|\nK:G\nF|[K:Bb]B|")), [65, 66, 70]);
    assert_eq!(heard("C|\nL:1/8\nD|[L:1/2]E|"), "0+1:60 1+1/2:62 3/2+2:64");
    assert_eq!(heard("[M:6/8]Z|C"), "3+1:60");
}

/// REQ: ABC 2.1 "4.3 Note lengths".
#[test]
fn slashes_halve() {
    assert_eq!(heard("C/D//E3/2F/4"), "0+1/2:60 1/2+1/4:62 3/4+3/2:64 9/4+1/4:65");
}

/// REQ: ABC 2.1 "3.1.8 Q: - tempo": the beat of a tempo counts.
#[test]
fn a_tempo_has_its_beat() {
    let seconds =
        |tempo: &str| perform(&format!("X:1\nT:t\nL:1/4\nQ:{tempo}\nK:C\nCDEF|\n")).seconds();
    assert!((seconds("3/8=80") - 2.0).abs() < 1e-9);
    assert!((seconds("1/4=60") - 4.0).abs() < 1e-9);
    assert!((seconds("1/2=60") - 2.0).abs() < 1e-9);
}

/// REQ: ABC 2.1 "4.5 Rests": a rest of a bar is as long as the meter's bar.
#[test]
fn a_bar_rest_is_a_bar() {
    assert_eq!(sounds("X:1\nT:t\nM:6/8\nL:1/8\nK:C\nZ|C|\n"), "3+1/2:60");
}

/// REQ: ABC 2.1 "4.9 First and second repeats" and "4.10 Variant endings".
#[test]
fn endings_are_played_in_their_turn() {
    assert_eq!(keys(&tune("|:C|1 D:|2 E|]")), [60, 62, 60, 64]);
    assert_eq!(keys(&tune("|:C|1,3 D:|2 E:|4 F|]")), [60, 62, 60, 64, 60, 62, 60, 65]);
    assert_eq!(keys(&tune("|:C|1-2 D:|3 E|]")), [60, 62, 60, 62, 60, 64]);
    assert_eq!(keys(&tune("|:C|1 D:|2 E|]|:F|1 G:|2 A|]")), [60, 62, 60, 64, 65, 67, 65, 69]);
    assert_eq!(keys(&tune("|:C|1 D:|2 E||F:|G|")), [60, 62, 60, 64, 65, 65, 67]);
    assert_eq!(keys(&tune("|:C|1 D:|E|]")), [60, 62, 60, 64]);
}

/// REQ: ABC 2.1 "4.8 Repeat/bar symbols".
#[test]
fn a_repeat_goes_back_to_where_its_section_starts() {
    assert_eq!(keys(&tune("C:|D:|")), [60, 60, 62, 62]);
    assert_eq!(keys(&tune("C|:D:|E")), [60, 62, 62, 64]);
    assert_eq!(keys(&tune("|:C::D:|")), [60, 60, 62, 62]);
    assert_eq!(keys(&tune("|:C:|:D:|")), [60, 60, 62, 62]);
    assert_eq!(keys(&tune("|:C:||:D:|")), [60, 60, 62, 62]);
    assert_eq!(keys(&tune("|::C::|D")), [60, 60, 60, 62]);
    assert_eq!(keys(&tune("[|C|]D||E.|F[|]G")), [60, 62, 64, 65, 67]);
}

/// REQ: ABC 2.1 "4.17 Chords and unisons": a chord is as long as its first note, and its outer
/// length multiplies the inner ones.
#[test]
fn lengths_inside_chords_count() {
    assert_eq!(heard("[C2E]D"), "0+2:60 0+1:64 2+1:62");
    assert_eq!(heard("[CE2]D"), "0+1:60 0+2:64 1+1:62");
    assert_eq!(heard("[C2E2]3/2D"), "0+3:60 0+3:64 3+1:62");
}

/// REQ: ABC 2.1 "4.11 Ties and slurs".
#[test]
fn ties_join_notes_and_chords() {
    assert_eq!(heard("C-C"), "0+2:60");
    assert_eq!(heard("^C-|C C"), "0+2:61 2+1:60");
    assert_eq!(heard("[CE]-[CE]"), "0+2:60 0+2:64");
    assert_eq!(heard("[C-E][CE]"), "0+2:60 0+1:64 1+1:64");
    assert_eq!(heard("C-D"), "0+1:60 1+1:62");
    assert_eq!(heard("(CC)"), "0+1:60 1+1:60", "a slur is not a tie");
}

/// REQ: ABC 2.1 "4.13 Duplets, triplets, quadruplets, etc.": members may be chords and rests.
#[test]
fn tuplets_take_the_time_they_say() {
    assert_eq!(heard("(3CDE F"), "0+2/3:60 2/3+2/3:62 4/3+2/3:64 2+1:65");
    assert_eq!(heard("(3[CE]zD F"), "0+2/3:60 0+2/3:64 4/3+2/3:62 2+1:65");
    assert_eq!(heard("(3:2:2C2D F"), "0+4/3:60 4/3+2/3:62 2+1:65");
    assert_eq!(
        heard("(5:4:5CDEFG A"),
        "0+4/5:60 4/5+4/5:62 8/5+4/5:64 12/5+4/5:65 16/5+4/5:67 4+1:69"
    );
}

/// REQ: ABC 2.1 "4.12 Grace notes": they sound, and the bar stays as long as it is.
#[test]
fn grace_notes_take_time_from_the_note_after() {
    assert_eq!(heard("{g}C2D"), "0+1/4:79 1/4+7/4:60 2+1:62");
    assert_eq!(
        heard("{gagag}CD"),
        "0+1/10:79 1/10+1/10:81 1/5+1/10:79 3/10+1/10:81 2/5+1/10:79 1/2+1/2:60 1+1:62"
    );
}

/// REQ: ABC 2.1 "4.14 Decorations": dynamics change how hard notes are struck.
#[test]
fn dynamics_are_heard() {
    let performance = perform(&tune("C!f!D!accent!E!pp!F"));
    let velocities: Vec<u8> = performance.notes().map(|note| note.velocity).collect();
    assert_eq!(velocities, [80, 95, 110, 50]);
}

/// REQ: ABC 2.1 "4.15 Symbol lines": staccato and accents stand over their notes.
#[test]
fn a_symbol_line_marks_its_notes() {
    assert_eq!(heard("CD|E\ns:* !staccato!|*"), heard("C.D|E"));
    let performance = perform(&tune("CD|\ns:* !accent!"));
    assert_eq!(performance.notes().map(|note| note.velocity).collect::<Vec<_>>(), [80, 95]);
}

/// REQ: ABC 2.1 "4.2 Accidentals" and "11.3": an accidental holds to the bar line, in every octave
/// by default.
#[test]
fn accidentals_hold_to_the_bar_line() {
    assert_eq!(keys(&tune("^CCc|C")), [61, 61, 73, 60]);
    assert_eq!(
        keys("X:1\nT:t\nL:1/4\n%%propagate-accidentals octave\nK:C\n^CCc|C|\n"),
        [61, 61, 72, 60]
    );
    assert_eq!(keys("X:1\nT:t\nL:1/4\n%%propagate-accidentals not\nK:C\n^CC|\n"), [61, 60]);
}

/// REQ: ABC 2.1 "7. Multiple voices": voices sound together, each with its own repeats.
#[test]
fn voices_sound_together() {
    assert_eq!(
        sounds("X:1\nT:t\nL:1/4\nK:C\nV:1\n|:C:|\nV:2 octave=-1\nE2|\n"),
        "0+1:60 1+1:60 / 0+2:52"
    );
    assert_eq!(heard("CD&E2|F"), "0+1:60 0+2:64 1+1:62 2+1:65");
}

/// REQ: ABC 2.1 "3.1.9 P: - parts".
#[test]
fn parts_are_played_in_their_order() {
    assert_eq!(keys("X:1\nT:t\nL:1/4\nP:A2BA\nK:C\nP:A\nC|\nP:B\nD|\n"), [60, 60, 62, 60]);
}

/// REQ: ABC 2.1 "9. Macros" and "4.16 Redefinable symbols".
#[test]
fn macros_and_symbols_are_written_out() {
    assert_eq!(keys("X:1\nT:t\nL:1/4\nm: ~n = n{o}n{m}n\nK:C\n~A|\n"), [69, 71, 69, 67, 69]);
    let performance = perform("X:1\nT:t\nL:1/4\nU: k = !ff!\nK:C\nkC|\n");
    assert_eq!(performance.notes().next().unwrap().velocity, 110);
}

/// REQ: `%%MIDI` program, transpose, drum and gchord.
#[test]
fn midi_directives_that_matter_are_obeyed() {
    let performance = perform(&tune(
        "%%MIDI program 40\n%%MIDI transpose 2\n%%MIDI drum d2zd 36 38 100 90\n%%MIDI drumon\nC4|",
    ));
    assert_eq!(performance.lines[0].programs, [(0.into(), 40)]);
    assert_eq!(performance.lines[0].notes[0].key, 62);
    let drums: Vec<_> =
        performance.lines[1].notes.iter().map(|n| (n.onset * 4, n.key, n.velocity)).collect();
    assert_eq!(performance.lines[1].channel, 9);
    assert_eq!(drums, [(0.into(), 36, 100), (3.into(), 38, 90)]);
}

/// REQ: chord symbols accompanied when asked, and only then.
#[test]
fn chord_symbols_are_accompanied_when_asked() {
    let book = book(&tune("\"Am\"C4|\"G7/B\"C4|"));
    let plain = abc::perform(&book, 0, &Options::default()).unwrap();
    assert_eq!(plain.lines.len(), 1);
    let asked = abc::perform(&book, 0, &Options { chords: true, ..Options::default() }).unwrap();
    let heard = |line: usize| -> Vec<String> {
        asked.lines[line].notes.iter().map(|n| format!("{}:{}", n.onset * 4, n.key)).collect()
    };
    assert_eq!(heard(1), ["0:45", "2:45", "4:47", "6:47"]);
    assert_eq!(heard(2)[..3], ["1:57", "1:60", "1:64"]);
}

/// REQ: `abc_to_midi` with tempo override, transpose, velocity and channel.
#[test]
fn the_options_are_obeyed() {
    let book = book("X:1\nT:t\nL:1/4\nQ:1/4=60\nK:C\nCD|[Q:1/4=30]E|\n");
    let options =
        Options { tempo: Some(240), transpose: 3, velocity: 50, channel: 5, chords: false };
    let performance = abc::perform(&book, 0, &options).unwrap();
    assert!((performance.seconds() - 0.75).abs() < 1e-9);
    assert_eq!(performance.lines[0].channel, 5);
    let notes: Vec<_> = performance.notes().map(|note| (note.key, note.velocity)).collect();
    assert_eq!(notes, [(63, 50), (65, 50), (67, 50)]);
}

/// REQ: swing-free exact timing: ticks are as fine as the notes need.
#[test]
fn ticks_are_exact() {
    let performance = perform(&tune("(7:4:7CDEFGAB (3CDE|"));
    let sequence = abc::to_midi(&performance);
    let ons: Vec<u64> = sequence.tracks[0]
        .iter()
        .filter(|event| matches!(event.message, Message::NoteOn { .. }))
        .map(|event| event.tick)
        .collect();
    assert_eq!(sequence.timing, ringback_studio::smf::Timing::PerQuarter(3360));
    assert_eq!(ons[..8], [0, 1920, 3840, 5760, 7680, 9600, 11520, 13440]);
}

/// Rule: the file contains the tune's title, tempo, meter, key and lyrics.
#[test]
fn the_midi_file_carries_what_the_tune_says() {
    let text = "X:1\nT:Caf\\'e\nM:3/4\nL:1/4\nQ:1/4=100\nK:Gm\nGAB|\nw:un deux trois\n";
    let sequence = abc::to_midi(&perform(text));
    let has = |wanted: Message| sequence.tracks[0].iter().any(|event| event.message == wanted);
    assert!(has(Message::Text(TextKind::TrackName, "Café".to_owned())));
    assert!(has(Message::Tempo(600_000)));
    assert!(has(Message::TimeSignature { numerator: 3, denominator_power: 2 }));
    assert!(has(Message::KeySignature { sharps: -2, minor: true }));
    assert!(has(Message::Text(TextKind::Lyric, "deux".to_owned())));
}

/// Rule: a tunebook's header applies to all of its tunes, and each tune is independent.
#[test]
fn a_tunebook_has_many_tunes() {
    let text = "L:1/4\nM:3/4\n\nX:1\nT:a\nK:C\nC|\n\nfree text\n\nX:2\nT:b\nK:D\nL:1/8\nF|\n";
    let book = book(text);
    assert_eq!(book.tunes.len(), 2);
    let length = |index| {
        let performance = abc::perform(&book, index, &Options::default()).unwrap();
        let note = performance.notes().next().unwrap().clone();
        (note.duration * 4, note.key)
    };
    assert_eq!(length(0), (1.into(), 60));
    assert_eq!(length(1), (abc::Fraction::new(1, 2), 66));
}

/// REQ: ABC 2.1 "4.14 Decorations": trills and rolls are played with the neighbours of the key.
#[test]
fn trills_and_rolls_are_played() {
    // Quarters: eight thirty-seconds of a whole note, the upper one first.
    let trill = keys(&tune("[K:D]TE"));
    assert_eq!(trill, [66, 64, 66, 64, 66, 64, 66, 64]);
    assert_eq!(heard("~E2"), "0+1/4:65 1/4+7/4:64");
    assert_eq!(heard("~E3"), "0+1:64 1+1/4:65 5/4+3/4:64 2+1/4:62 9/4+3/4:64");
    assert_eq!(keys(&tune("^F TE/")), [66, 66, 64, 66, 64], "an accidental of the bar counts");
    assert_eq!(heard("TE-E"), heard("E-E"), "a tied note is held");
    assert_eq!(heard("T[CE]"), heard("[CE]"), "a chord is held");
    assert_eq!(heard("~E//"), "0+1/4:64", "no time for more");
}
