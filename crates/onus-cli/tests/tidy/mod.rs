//! The house rules, as tests over the files of the checkout.
//!
//! Each rule is a function from text to complaints, tested on small texts beside it, and one
//! test that runs it over the checkout. A complaint names the place and says what to do instead.

mod arrows;
mod checkout;
mod citations;
mod examples;
mod links;
mod markdown;
mod names;
mod places;
mod scenarios;
mod sizes;
mod source;
mod words;

/// Fails with every complaint at once, so that one run shows all there is to mend.
fn assert_tidy(complaints: &[String]) {
    assert!(complaints.is_empty(), "{} complaint(s):\n{}", complaints.len(), complaints.join("\n"));
}
