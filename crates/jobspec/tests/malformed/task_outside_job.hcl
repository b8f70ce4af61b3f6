task "http" {
}
