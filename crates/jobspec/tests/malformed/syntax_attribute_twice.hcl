job "web" {
  priority = 1
  priority = 2
}
