job "web" {
  group "a" "b" {
  }
}
