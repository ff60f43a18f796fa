#[test]
fn the_shared_text_has_five_words() {
    assert_eq!(include_str!("../../text.txt").split_whitespace().count(), 5);
}
