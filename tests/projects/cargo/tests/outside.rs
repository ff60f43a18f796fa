#[test]
fn an_empty_text_has_none() {
    assert_eq!(words::count(" \n"), 0);
}
