//! The order of parts (`P:` in a header): expands `A(AB)3C2`.

/// The longest order.
const PARTS_MAX: usize = 1000;
/// Deeper brackets are ignored.
const DEPTH_MAX: usize = 16;

/// Returns the parts in playing order; `None` if there are too many.
pub(super) fn written_out(text: &str) -> Option<Vec<char>> {
    let mut stack: Vec<Vec<char>> = vec![Vec::new()];
    // The part or bracket that a number repeats.
    let mut last: Vec<char> = Vec::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            'A'..='Z' | 'a'..='z' => {
                last = vec![c];
                stack.last_mut()?.push(c);
            }
            '(' if stack.len() < DEPTH_MAX => stack.push(Vec::new()),
            ')' if stack.len() > 1 => {
                last = stack.pop()?;
                stack.last_mut()?.extend(&last);
            }
            '0'..='9' => {
                let mut number = c.to_digit(10)? as usize;
                while let Some(digit) = chars.peek().and_then(|c| c.to_digit(10)) {
                    chars.next();
                    number = (number * 10 + digit as usize).min(PARTS_MAX + 1);
                }
                for _ in 1..number {
                    stack.last_mut()?.extend(&last);
                    if stack.last()?.len() > PARTS_MAX {
                        return None;
                    }
                }
                last.clear();
            }
            _ => {}
        }
        if stack.last()?.len() > PARTS_MAX {
            return None;
        }
    }
    let order: Vec<char> = stack.into_iter().flatten().collect();
    (order.len() <= PARTS_MAX).then_some(order)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// REQ: ABC 2.1 "3.1.9 P: - parts".
    #[test]
    fn orders_are_written_out() {
        let order = |text| written_out(text).map(String::from_iter);
        assert_eq!(order("ABAC").as_deref(), Some("ABAC"));
        assert_eq!(order("A3").as_deref(), Some("AAA"));
        assert_eq!(order("(AB)3").as_deref(), Some("ABABAB"));
        assert_eq!(order("((AB)3.(CD)3)2").as_deref(), Some("ABABABCDCDCDABABABCDCDCD"));
        assert_eq!(order(")(A").as_deref(), Some("A"));
    }

    /// Rule: a short text cannot expand into a huge order.
    #[test]
    fn an_order_that_explodes_is_refused() {
        assert_eq!(written_out("((((((A9)9)9)9)9)9)9"), None);
        assert_eq!(written_out("A999999999999999999999"), None);
    }
}
