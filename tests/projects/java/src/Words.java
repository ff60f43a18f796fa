public final class Words {
    static long count(String text) {
        return text.isBlank() ? 0 : text.strip().split("\\s+").length;
    }

    public static void main(String[] args) {
        assert count("a text  of five words") == 5;
        assert count(" ") == 0;
        System.out.println("5 words");
    }
}
