package require tcltest
source words.tcl
tcltest::test words {words are counted} -body {count "a text  of five words"} -result 5
tcltest::cleanupTests
exit [expr {$tcltest::numTests(Failed) > 0}]
