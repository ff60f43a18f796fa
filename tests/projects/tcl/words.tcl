proc count {text} { return [llength [regexp -all -inline {\S+} $text]] }
